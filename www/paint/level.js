/** The top of the scale: the limit, or what went beyond it. */
export const highest = ({ limit, levels }) =>
  levels.reduce((most, { level }) => Math.max(most, level), limit);

/** It is a count, so it goes in steps; what happens within half a pixel is one stroke from its least to its most. */
function traceSteps(context, levels, x, y) {
  let [before, column, low, high] = [levels[0].level, Number.NEGATIVE_INFINITY, 0, 0];
  for (const { at, level } of levels) {
    const left = x(at);
    if (left - column >= 0.5) {
      context.lineTo(left, y(before));
      [column, low, high] = [left, before, before];
    }
    if (level < low || level > high) {
      context.lineTo(left, y(level));
      [low, high] = [Math.min(low, level), Math.max(high, level)];
    }
    before = level;
  }
  context.lineTo(x(levels.at(-1).at), y(before));
}

/** The level as a line over a soft area, and the limit as a dashed one. */
export function paintLevel({ context, colours, x, y, levels, limit, box }) {
  if (levels.length === 0) return;
  context.beginPath();
  context.moveTo(x(levels[0].at), y(levels[0].level));
  traceSteps(context, levels, x, y);
  context.strokeStyle = colours.level;
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  context.stroke();
  context.lineTo(x(levels.at(-1).at), y(0));
  context.lineTo(x(levels[0].at), y(0));
  context.closePath();
  context.fillStyle = colours["level-soft"];
  context.fill();

  context.beginPath();
  context.setLineDash([2, 4]);
  context.moveTo(box.left, y(limit));
  context.lineTo(box.right, y(limit));
  context.strokeStyle = colours.quiet;
  context.lineWidth = 1;
  context.stroke();
  context.setLineDash([]);
}
