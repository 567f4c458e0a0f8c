import { paintUpright } from "./axis.js";
import { paintAllowed, paintDenied } from "./hits.js";
import { paintLevel } from "./level.js";
import { colours, surface } from "./surface.js";

/** The small timeline of the comparison, with the busiest span shaded. Answers where each hit was drawn. */
export function paintStrip(canvas, scene) {
  const { context, width, height } = surface(canvas);
  const box = { left: 0, right: width, top: 2, bottom: height - 2 };
  const x = (time) => ((time - scene.from) / (scene.to - scene.from)) * width;
  const top = Math.max(scene.limit, ...scene.levels.map(({ level }) => level));
  const floor = height - 30;
  const y = (level) => floor - (level / top) * (floor - 10);
  const brush = { ...scene, context, colours: colours(), x, y, box };

  paintBusiest(brush, scene);
  for (const edge of scene.edges) paintUpright(brush, x(edge), box, brush.colours.quiet, [1, 4]);
  paintLevel(brush);
  paintUpright(brush, x(scene.now), box, brush.colours.rule);
  return scene.hits.map((hit) => {
    const mark = { ...hit, x: x(hit.at), y: hit.allowed ? height - 19 : height - 8 };
    if (hit.allowed) paintAllowed(brush, mark.x, mark.y, 4);
    else paintDenied(brush, mark.x, mark.y, 2);
    return mark;
  });
}

/** The span of one scale in which the most was let through, if that was more than the limit. */
function paintBusiest({ context, colours: { busy }, x, box }, { busiest, scale, limit }) {
  if (busiest.count <= limit) return;
  const [left, right] = [x(busiest.at - scale), x(busiest.at)];
  context.fillStyle = busy;
  context.fillRect(left, box.top, right - left, box.bottom - box.top);
}
