/** The gap between the strokes of the hatching. */
const gap = 6;

/** Hatches the difference of two areas. The strokes move with the time. */
export function paintHatching({ context, colours, x, box }, areas) {
  const height = box.bottom - box.top;
  const first = (x(0) % gap) - gap - height;
  const strokes = new Path2D();
  for (let left = first; left < box.right; left += gap) {
    strokes.moveTo(left, box.bottom);
    strokes.lineTo(left + height, box.top);
  }
  context.save();
  context.clip(areas, "evenodd");
  context.strokeStyle = colours.level;
  context.lineWidth = 1.25;
  context.stroke(strokes);
  context.restore();
}
