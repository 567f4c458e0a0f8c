import { paintUpright } from "./axis.js";
import { paintBans } from "./bans.js";
import { highest, paintLevel } from "./level.js";
import { paintRows } from "./rows.js";
import { colours, surface, thickness } from "./surface.js";
import { bold, write } from "./words.js";

const hits = { high: 8, half: 2, rowHeight: 6 };

/** Paints the small timeline of the comparison, with the busiest span shaded, or an arrow to it. Returns the position of each hit. */
export function paintStrip(canvas, scene) {
  const { context, width, height } = surface(canvas);
  const box = { left: 0, right: width, top: 2, bottom: height - 2 };
  const x = (time) => ((time - scene.from) / (scene.to - scene.from)) * width;
  const top = highest(scene);
  const mostRows = height < 80 ? 2 : 3;
  const deniedTop = height - 5 - (mostRows - 1) * hits.rowHeight;
  const floor = deniedTop - 23;
  const y = (level) => floor - (level / top) * (floor - 10);
  const brush = { ...scene, context, colours: colours(), x, y, box };

  paintBusiest(brush, scene);
  paintBans(brush);
  for (const edge of scene.edges) paintUpright(brush, x(edge), box, brush.colours.quiet, [1, 4]);
  paintLevel(brush);
  paintUpright(brush, x(scene.now), box, brush.colours.rule);
  if (scene.ago) paintAgo(brush, scene.ago, (floor + box.top) / 2);
  return paintRows(brush, {
    ...hits,
    mostRows,
    thick: thickness(box),
    allowedTop: deniedTop - 12,
    deniedTop,
  });
}

/** Paints an arrow to the busiest span, which is to the left of the strip, and how long ago it was. */
function paintAgo(brush, ago, top) {
  const { context, colours } = brush;
  context.font = bold;
  context.textAlign = "left";
  context.textBaseline = "middle";
  write(brush, `← ${ago}`, 6, top, colours.denied);
}

/** Shades the span of one scale in which the most was let through, if that was more than the policy promises. */
function paintBusiest({ context, colours: { busy }, x, box }, { busiest, scale, isOver }) {
  if (!isOver) return;
  const [left, right] = [x(busiest.at - scale), x(busiest.at)];
  context.fillStyle = busy;
  context.fillRect(left, box.top, right - left, box.bottom - box.top);
}
