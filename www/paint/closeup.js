import { paintAxis, paintUpright } from "./axis.js";
import { highest, paintLevel } from "./level.js";
import { paintRows } from "./rows.js";
import { colours, surface } from "./surface.js";
import { large, small, write } from "./words.js";

const hits = { high: 18, half: 3.5, rowHeight: 10 };
/** From so many hits on, their bars are thin. */
const many = 60;
/** Where the bracket over the period is, and the height of its ends. */
const [bracketTop, bracketEnd] = [30, 7];

/** Paints one period of a simulation under a bracket with a note. Returns the position of each hit. */
export function paintCloseup(canvas, scene, note) {
  const { context, width, height } = surface(canvas);
  const box = { left: 0, right: width, top: bracketTop, bottom: height - 24 };
  const x = (time) => ((time - scene.from) / (scene.to - scene.from)) * width;
  const mostRows = height < 200 ? 2 : 3;
  const deniedTop = box.bottom - 8 - (mostRows - 1) * hits.rowHeight;
  const allowedTop = deniedTop - 20;
  const floor = allowedTop - 16;
  const top = highest(scene);
  const y = (level) => floor - (level / top) * (floor - bracketTop - 28);
  const brush = { ...scene, context, colours: colours(), x, y, box, font: small };

  if (scene.isOver) paintPeriod(brush);
  paintLevel(brush);
  for (const edge of scene.edges) paintEdge(brush, x(edge));
  const marks = paintRows(brush, {
    ...hits,
    thick: scene.hits.length < many ? 3 : 1,
    mostRows,
    allowedTop,
    deniedTop,
  });
  paintNote(brush, note);
  paintAxis({ ...brush, top: box.bottom + 8 });
  return marks;
}

function paintPeriod({ context, colours: { busy }, x, box, period: { from, to } }) {
  context.fillStyle = busy;
  context.fillRect(x(from), box.top, x(to) - x(from), box.bottom - box.top);
}

/** Paints an edge of a window, and says what it does where that let too much through. */
function paintEdge(brush, left) {
  const { context, colours, box, isOver } = brush;
  paintUpright(brush, left, { ...box, top: isOver ? box.top + 24 : box.top }, colours.quiet, [2, 3]);
  if (!isOver) return;
  context.font = small;
  context.textAlign = "center";
  context.textBaseline = "top";
  write(brush, "a new window counts from 0", left, box.top + 7, colours.quiet);
}

/** Paints the bracket over the period, and the note above it. */
function paintNote(brush, note) {
  const { context, colours, x, box, isOver, period } = brush;
  const colour = isOver ? colours.denied : colours.ink;
  const [left, right] = [x(period.from), x(period.to)];
  context.beginPath();
  context.moveTo(left, bracketTop + bracketEnd);
  context.lineTo(left, bracketTop);
  context.lineTo(right, bracketTop);
  context.lineTo(right, bracketTop + bracketEnd);
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.stroke();
  context.font = large;
  context.textAlign = "center";
  context.textBaseline = "bottom";
  write(brush, note, (box.left + box.right) / 2, bracketTop - 6, colour);
}
