const steps = [100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];
const roomForLabel = 64;

/** Returns seconds with no more decimals than the step needs. */
const label = (time, step) => `${(time / 1_000).toFixed(step < 1_000 ? (step === 250 ? 2 : 1) : 0)} s`;

/** Paints times along the bottom, as many as there is room for. */
export function paintAxis({ context, colours, x, from, to, box, top, font }) {
  const perLabel = ((to - from) * roomForLabel) / (box.right - box.left);
  const step = steps.find((each) => each >= perLabel) ?? steps.at(-1);
  context.fillStyle = colours.quiet;
  context.font = font;
  context.textAlign = "center";
  context.textBaseline = "top";
  for (let time = Math.max(Math.ceil(from / step) * step, 0); time <= to; time += step) {
    const left = x(time);
    if (left > box.left + 14 && left < box.right - 14) context.fillText(label(time, step), left, top);
  }
}

/** Paints a line down the whole height, dashed for the edges of windows. */
export function paintUpright({ context }, left, box, colour, dash = []) {
  context.beginPath();
  context.setLineDash(dash);
  const sharp = Math.round(left) + 0.5;
  context.moveTo(sharp, box.top);
  context.lineTo(sharp, box.bottom);
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.stroke();
  context.setLineDash([]);
}
