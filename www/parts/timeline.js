import { element, make, say } from "../dom.js";
import { sceneOf } from "../paint/scene.js";
import { paintTimeline } from "../paint/timeline.js";
import { span, verdict } from "../words.js";

const reach = 24;
const rows = 20;

const inWords = (hit, number) =>
  `Hit ${number} at ${(hit.at / 1_000).toFixed(3)} s${hit.reserved ? `, a reservation of ${hit.reserved}` : ""}. ${verdict(hit)} Count ${hit.count}.`;

/** Shows the large timeline: drawn each frame, and read hit by hit with the arrow keys or the pointer. */
export function timeline(current) {
  const canvas = element("timeline");
  let marks = [];
  let chosen = -1;
  let filled;
  let offset = 0;

  const choose = (position) => {
    const { hits } = current().simulation;
    chosen = Math.max(Math.min(position, hits.length - 1), -1);
  };
  const moves = {
    ArrowLeft: () => (chosen < 0 ? current().simulation.hits.length : chosen) - 1,
    ArrowRight: () => (chosen < 0 ? current().simulation.hits.length - 1 : chosen + 1),
    Home: () => 0,
    End: () => current().simulation.hits.length - 1,
    Escape: () => -1,
  };
  canvas.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    choose(move());
    describe();
  });
  canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => choose(nearest(marks, offsetX, offsetY)));
  canvas.addEventListener("pointerleave", () => choose(-1));

  function nearest(near, left, top) {
    let [best, distance] = [-1, reach];
    for (const [position, mark] of near.entries()) {
      const away = Math.hypot(mark.x - left, mark.y - top);
      if (away < distance) [best, distance] = [position + offset, away];
    }
    return best;
  }

  function describe() {
    const { hits } = current().simulation;
    const hit = hits[chosen] ?? hits.at(-1);
    const text = hit ? inWords(hit, (hits[chosen] ? chosen : hits.length - 1) + 1) : "No hits yet.";
    say(element("inspected"), text);
    canvas.setAttribute("aria-valuemin", 0);
    canvas.setAttribute("aria-valuemax", hits.length);
    canvas.setAttribute("aria-valuenow", chosen < 0 ? hits.length : chosen + 1);
    canvas.setAttribute("aria-valuetext", text);
  }

  element("table").addEventListener("toggle", fillTable);
  function fillTable() {
    const { hits } = current().simulation;
    if (!element("table").open || filled === hits.at(-1)) return;
    filled = hits.at(-1);
    const cells = (hit) => [
      `${(hit.at / 1_000).toFixed(3)} s`,
      `${hit.allowed ? "allowed" : hit.isBanned ? "banned" : "denied"}${hit.reserved ? `, reserved ${hit.reserved}` : ""}`,
      hit.count,
      hit.remaining,
      hit.allowed ? "" : span(hit.retryAfter),
    ];
    element("table-rows").replaceChildren(
      ...hits
        .slice(-rows)
        .reverse()
        .map((hit) => make("tr", {}, ...cells(hit).map((cell) => make("td", {}, String(cell))))),
    );
  }

  return {
    /** Clears the choice, which belongs to another past. */
    forget: () => choose(-1),
    draw() {
      const { run, state, now } = current();
      const scene = sceneOf(run, state.algorithm, now);
      offset = scene.firstHit;
      marks = paintTimeline(canvas, scene, chosen - offset);
      describe();
      fillTable();
      return marks;
    },
  };
}
