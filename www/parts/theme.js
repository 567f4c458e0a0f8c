import { element, say } from "../dom.js";
import { forgetColours } from "../paint/surface.js";

/** Switches between light and dark: the system's theme, until the visitor chooses one. */
export function themeSwitch() {
  const root = document.documentElement;
  const button = element("theme");
  const show = () => {
    forgetColours();
    say(button, root.dataset.theme === "dark" ? "Switch to light" : "Switch to dark");
  };
  button.addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    show();
  });
  addEventListener("theme", show);
  show();
}
