import { paintAxis, paintUpright } from "./axis.js";
import { paintAllowed, paintDenied, paintWait } from "./hits.js";
import { paintLevel } from "./level.js";
import { colours, surface } from "./surface.js";

const waitRows = 10;
const small = "12px ui-sans-serif, system-ui, sans-serif";

/** The large timeline, with a ring around the chosen one of the hits in view. Answers where each was drawn. */
export function paintTimeline(canvas, scene, chosen) {
  const { context, width, height } = surface(canvas);
  const box = { left: 0, right: width, top: 8, bottom: height - 26 };
  const x = (time) => ((time - scene.from) / (scene.to - scene.from)) * width;
  const lane = box.bottom - 92;
  const top = Math.max(scene.limit, ...scene.levels.map(({ level }) => level));
  const y = (level) => lane - 24 - (level / top) * (lane - 24 - box.top - 14);
  const brush = { ...scene, context, colours: colours(), x, y, box, font: small };

  for (const edge of scene.edges) paintUpright(brush, x(edge), box, brush.colours.quiet, [1, 4]);
  paintLevel(brush);
  paintWords(brush, scene);
  const marks = paintHits(brush, scene, lane);
  paintUpright(brush, x(scene.now), box, brush.colours.ink);
  if (marks[chosen]) paintChosen(brush, marks[chosen]);
  paintAxis({ ...brush, top: box.bottom + 8 });
  return marks;
}

function paintWords({ context, colours: { quiet }, y, limit, id }, { edges }) {
  context.font = small;
  context.fillStyle = quiet;
  context.textAlign = "left";
  context.textBaseline = "bottom";
  const what = id.endsWith("bucket") ? "capacity" : "limit";
  context.fillText(`${what} ${limit}${edges.length > 0 ? "   ┊ window’s edge" : ""}`, 2, y(limit) - 3);
}

function paintHits(brush, { hits, to }, lane) {
  let row = 0;
  return hits.map((hit) => {
    const left = brush.x(hit.at);
    if (hit.allowed) {
      row = 0;
      paintAllowed(brush, left, lane, 8);
      return { ...hit, x: left, y: lane };
    }
    const top = lane + 20 + row * 7;
    row = (row + 1) % waitRows;
    const until = Math.min(hit.at + hit.retryAfter, to);
    paintWait(brush, left, brush.x(until), top);
    paintDenied(brush, left, top, 3);
    return { ...hit, x: left, y: top, until: brush.x(until) };
  });
}

function paintChosen({ context, colours: { ink } }, mark) {
  context.beginPath();
  context.arc(mark.x, mark.y, 7, 0, 2 * Math.PI);
  context.strokeStyle = ink;
  context.lineWidth = 1.5;
  context.stroke();
}
