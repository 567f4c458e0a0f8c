const firstPause = 320;
const pause = 90;

/** A button that acts when pressed and goes on while held: by pointer, by key, and by whatever only clicks. */
export function pressable(button, act) {
  let timer;
  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
    delete button.dataset.held;
  };
  const again = (wait) => {
    timer = setTimeout(() => {
      act();
      again(pause);
    }, wait);
  };
  const start = () => {
    if (timer !== undefined || button.disabled) return;
    button.dataset.held = "";
    act();
    again(firstPause);
  };

  button.addEventListener("pointerdown", (event) => {
    if (event.button === 0) start();
  });
  button.addEventListener("keydown", (event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    if (!event.repeat) start();
  });
  for (const name of ["pointerup", "pointercancel", "pointerleave", "keyup", "blur"])
    button.addEventListener(name, stop);
  // A long press is not a wish for a menu.
  button.addEventListener("contextmenu", (event) => event.preventDefault());
  // A screen reader's click comes without a pointer and without a key.
  button.addEventListener("click", (event) => {
    if (event.detail === 0 && event.pointerType === "") act();
  });
}
