import { bold, write } from "./words.js";

/** The gap between the strokes across a ban. */
const gap = 9;

/** Marks the stretches in which the visitor is banned: tinted and struck through, and named where there is room. */
export function paintBans({ context, colours, x, box, bans }, { isNamed = false } = {}) {
  for (const { from, until } of bans) {
    const [left, right] = [Math.max(x(from), box.left), Math.min(x(until), box.right)];
    context.save();
    context.beginPath();
    context.rect(left, box.top, right - left, box.bottom - box.top);
    context.clip();
    context.fillStyle = context.strokeStyle = colours.denied;
    context.globalAlpha = 0.08;
    context.fill();
    context.globalAlpha = 0.25;
    context.lineWidth = 1;
    const height = box.bottom - box.top;
    const strokes = new Path2D();
    // The strokes move with the time.
    for (let start = x(from) - height; start < right; start += gap) {
      strokes.moveTo(start, box.top);
      strokes.lineTo(start + height, box.bottom);
    }
    context.stroke(strokes);
    context.restore();
    if (isNamed) paintName({ context, colours, box }, left, right);
  }
}

function paintName({ context, colours, box }, left, right) {
  context.font = bold;
  if (context.measureText("banned").width > right - left - 8) return;
  context.textAlign = "left";
  context.textBaseline = "top";
  write({ context, colours }, "banned", left + 6, box.top + 2, colours.denied);
}
