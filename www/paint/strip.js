import { paintUpright } from "./axis.js";
import { HitPaths } from "./hits.js";
import { highest, paintLevel } from "./level.js";
import { colours, surface, thickness } from "./surface.js";

const bold = "600 12px ui-sans-serif, system-ui, sans-serif";

/** Paints the small timeline of the comparison, with the busiest span shaded, or an arrow to it. Returns the position of each hit. */
export function paintStrip(canvas, scene) {
  const { context, width, height } = surface(canvas);
  const box = { left: 0, right: width, top: 2, bottom: height - 2 };
  const x = (time) => ((time - scene.from) / (scene.to - scene.from)) * width;
  const top = highest(scene);
  const floor = height - 30;
  const y = (level) => floor - (level / top) * (floor - 10);
  const brush = { ...scene, context, colours: colours(), x, y, box };

  paintBusiest(brush, scene);
  for (const edge of scene.edges) paintUpright(brush, x(edge), box, brush.colours.quiet, [1, 4]);
  paintLevel(brush);
  paintUpright(brush, x(scene.now), box, brush.colours.rule);
  if (scene.ago) paintAgo(brush, scene.ago, (floor + box.top) / 2);
  return paintHits(brush, scene.hits, height);
}

function paintHits(brush, hits, height) {
  const paths = new HitPaths(thickness(brush.box), 2);
  const marks = hits.map((hit) => {
    const left = brush.x(hit.at);
    if (hit.allowed) paths[hit.reserved ? "reserve" : "allow"](left, height - 19, 8);
    else paths.deny(left, height - 8);
    return { hit, x: left, y: hit.allowed ? height - 19 : height - 8 };
  });
  paths.paint(brush);
  return marks;
}

/** Paints an arrow to the busiest span, which is to the left of the strip, and how long ago it was. */
function paintAgo({ context, colours: { denied, card } }, ago, top) {
  const words = `← ${ago}`;
  context.font = bold;
  context.textAlign = "left";
  context.textBaseline = "middle";
  // On the colour of the card, so that it can be read over a line.
  context.strokeStyle = card;
  context.lineWidth = 4;
  context.strokeText(words, 6, top);
  context.fillStyle = denied;
  context.fillText(words, 6, top);
}

/** Shades the span of one scale in which the most was let through, if that was more than the limit. */
function paintBusiest({ context, colours: { busy }, x, box }, { busiest, scale, limit }) {
  if (busiest.count <= limit) return;
  const [left, right] = [x(busiest.at - scale), x(busiest.at)];
  context.fillStyle = busy;
  context.fillRect(left, box.top, right - left, box.bottom - box.top);
}
