/** The level as a line over a soft area, and the limit as a dashed one. */
export function paintLevel({ context, colours, x, y, levels, limit, box }) {
  if (levels.length === 0) return;
  context.beginPath();
  context.moveTo(x(levels[0].at), y(levels[0].level));
  let before = levels[0].level;
  for (const { at, level } of levels) {
    // It is a count, so it goes in steps.
    context.lineTo(x(at), y(before));
    context.lineTo(x(at), y(level));
    before = level;
  }
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
