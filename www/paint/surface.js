/** A canvas as sharp as its screen; answers its context and its size in CSS pixels. */
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

/** How thick a hit is drawn: on a small screen they lie close together. */
export const thickness = ({ right }) => (right < 500 ? 1 : 2);

const names = ["ink", "quiet", "rule", "allowed", "denied", "level", "level-soft", "busy", "card"];
let palette;

/** The colours of the style sheet, as they are in the theme of the moment. */
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
