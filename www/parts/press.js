/** How long a button is kept pressed before it repeats, in milliseconds. */
export const firstPause = 320;
const pause = 90;

/** Makes a button act when pressed, and repeat while it is kept pressed: by pointer, by key, or by a click alone. */
export function pressable(button, act) {
  let timer;
  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
    delete button.dataset.pressed;
  };
  const again = (wait) => {
    timer = setTimeout(() => {
      act();
      again(pause);
    }, wait);
  };
  const start = () => {
    if (timer !== undefined || button.disabled) return;
    button.dataset.pressed = "";
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
  // A long press must not open a menu.
  button.addEventListener("contextmenu", (event) => event.preventDefault());
  // The click of a screen reader has neither a pointer nor a key.
  button.addEventListener("click", (event) => {
    if (event.detail === 0 && event.pointerType === "") act();
  });
}
