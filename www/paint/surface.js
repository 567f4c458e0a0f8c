/** Clears a canvas at the resolution of the screen. Returns its context and its size in CSS pixels. */
export function surface(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const ratio = globalThis.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** Returns the thickness of a hit: on a small screen hits are close together. */
export const thickness = ({ right }) => (right < 500 ? 1 : 2);

const names = ["ink", "quiet", "rule", "allowed", "denied", "level", "level-soft", "busy", "card"];
let palette;

/** Returns the colours of the style sheet in the current theme. */
export function colours() {
  if (!palette) {
    const style = getComputedStyle(document.documentElement);
    palette = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return palette;
}

export function forgetColours() {
  palette = undefined;
}
