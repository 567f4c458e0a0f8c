import { limitName } from "../algorithms.js";
import { paintAxis, paintUpright } from "./axis.js";
import { paintBans } from "./bans.js";
import { burstsOf, paintCounts } from "./bursts.js";
import { paintChanges } from "./changes.js";
import { HitPaths, waitRows } from "./hits.js";
import { highest, paintLevel } from "./level.js";
import { colours, surface, thickness } from "./surface.js";
import { small, write } from "./words.js";

const half = 3;

/** Paints the large timeline, with a ring around the chosen hit. Returns the position of each hit. */
export function paintTimeline(canvas, scene, chosen) {
  const { context, width, height } = surface(canvas);
  const box = { left: 0, right: width, top: 8, bottom: height - 26 };
  const x = (time) => ((time - scene.from) / (scene.to - scene.from)) * width;
  const hitsTop = box.bottom - 92;
  const top = highest(scene);
  const y = (level) => hitsTop - 24 - (level / top) * (hitsTop - 24 - box.top - 14);
  const brush = { ...scene, context, colours: colours(), x, y, box, font: small };

  paintBans(brush, { isNamed: true });
  for (const edge of scene.edges) paintUpright(brush, x(edge), box, brush.colours.quiet, [1, 4]);
  paintLevel(brush);
  paintChanges(brush, hitsTop - 22);
  const marks = paintHits(brush, scene, hitsTop);
  paintUpright(brush, x(scene.now), box, brush.colours.ink);
  paintWords(brush);
  if (marks[chosen]) paintChosen(brush, marks[chosen]);
  paintAxis({ ...brush, top: box.bottom + 8 });
  return marks;
}

function paintWords(brush) {
  const { context, colours, y, limit, id, box } = brush;
  context.font = small;
  context.textAlign = "right";
  context.textBaseline = "bottom";
  write(brush, `${limitName(id)} ${limit}`, box.right - 2, y(limit) - 3, colours.quiet);
}

function paintHits(brush, { hits, to }, hitsTop) {
  const paths = new HitPaths(thickness(brush.box), half);
  let row = 0;
  const marks = hits.map((hit) => {
    const left = brush.x(hit.at);
    if (hit.allowed) {
      row = 0;
      paths[hit.reserved ? "reserve" : "allow"](left, hitsTop, 16);
      return { hit, x: left, y: hitsTop };
    }
    const top = hitsTop + 20 + row * 7;
    const until = brush.x(Math.min(hit.at + hit.retryAfter, to));
    paths.wait(left, until, top, row);
    paths.deny(left, top, row);
    row = (row + 1) % waitRows;
    return { hit, x: left, y: top, until };
  });
  paths.paint(brush);
  const denied = marks.filter(({ hit }) => !hit.allowed).map(({ x }) => x);
  paintCounts(brush, burstsOf(denied, half, waitRows), brush.box.bottom + 1);
  return marks;
}

function paintChosen({ context, colours: { ink } }, mark) {
  context.beginPath();
  context.arc(mark.x, mark.y, 7, 0, 2 * Math.PI);
  context.strokeStyle = ink;
  context.lineWidth = 1.5;
  context.stroke();
}
