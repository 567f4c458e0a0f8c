import { paintHatching } from "./hatching.js";

/** Returns the top of the scale: the limit, or the highest level if it is above. */
export const highest = ({ limit, levels }) =>
  levels.reduce((most, { level }) => Math.max(most, level), limit);

/** Traces a count, which changes in steps. Changes within half a pixel are one stroke from lowest to highest. */
function traceSteps(path, levels, heightOf, x, y) {
  let [before, column, low, high] = [heightOf(levels[0]), Number.NEGATIVE_INFINITY, 0, 0];
  path.moveTo(x(levels[0].at), y(before));
  for (const each of levels) {
    const [left, value] = [x(each.at), heightOf(each)];
    if (left - column >= 0.5) {
      path.lineTo(left, y(before));
      [column, low, high] = [left, before, before];
    }
    if (value < low || value > high) {
      path.lineTo(left, y(value));
      [low, high] = [Math.min(low, value), Math.max(high, value)];
    }
    before = value;
  }
  path.lineTo(x(levels.at(-1).at), y(before));
}

/** Returns the line of a value over time, and the area under it. */
function shapeOf({ levels, x, y }, heightOf) {
  const line = new Path2D();
  traceSteps(line, levels, heightOf, x, y);
  const area = new Path2D(line);
  area.lineTo(x(levels.at(-1).at), y(0));
  area.lineTo(x(levels[0].at), y(0));
  area.closePath();
  return { line, area };
}

/** Returns functions for the height without the open amount, and with it. */
const values = ({ isStock }) =>
  isStock
    ? [({ level }) => level, ({ level, open }) => level + open]
    : [({ level, open }) => level - open, ({ level }) => level];

/** Paints the level as a line over a soft area, its open part hatched, and the limit as a dashed line. */
export function paintLevel(brush) {
  const { context, colours, y, levels, limit, box } = brush;
  if (levels.length === 0) return;
  const [lower, upper] = values(brush).map((heightOf) => shapeOf(brush, heightOf));
  context.fillStyle = colours["level-soft"];
  context.fill(lower.area);
  if (levels.some(({ open }) => open > 0)) {
    const between = new Path2D(lower.area);
    between.addPath(upper.area);
    paintHatching(brush, between);
    stroke(context, lower.line, colours.level, 1);
  }
  stroke(context, upper.line, colours.level, 1.5);

  context.beginPath();
  context.setLineDash([2, 4]);
  context.moveTo(box.left, y(limit));
  context.lineTo(box.right, y(limit));
  context.strokeStyle = colours.quiet;
  context.lineWidth = 1;
  context.stroke();
  context.setLineDash([]);
}

function stroke(context, line, colour, width) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.stroke(line);
}
