import { byId, limitName } from "../algorithms.js";
import { element, make, say } from "../dom.js";
import { paintCloseup } from "../paint/closeup.js";
import { busiestPeriod, closeupOf } from "../paint/scene.js";
import { period } from "../words.js";
import { numbersOf } from "./compare.js";

const exact = "sliding_window";

/** Shows the busiest period of the chosen algorithm, and beside it the same period of an algorithm that is exact. */
export function opening(current) {
  const closeups = ["subject", "exact"].map((name) => {
    const title = make("b", {});
    const numbers = make("span", { class: "note" });
    const canvas = make("canvas", { class: "closeup", role: "img" });
    const counts = { allowed: make("span"), denied: make("span") };
    const foot = make("p", { class: "counts" }, ...Object.values(counts));
    const head = make("h2", {}, title, numbers);
    element("closeups").append(make("li", { class: "card", "data-closeup": name }, head, canvas, foot));
    return { name, title, numbers, canvas, counts };
  });

  return function draw() {
    const { run, state, now } = current();
    const subject = state.algorithm === exact ? "fix_window" : state.algorithm;
    const shown = busiestPeriod(run.simulations.get(subject), run, now);
    const marks = {};
    for (const { name, title, numbers, canvas, counts } of closeups) {
      const id = name === "exact" ? exact : subject;
      const scene = closeupOf(run, id, now, shown);
      const note = noteOf(id, run.simulations.get(id), state);
      say(title, byId[id].title);
      say(numbers, numbersOf(id, state));
      const denied = scene.hits.filter(({ allowed }) => !allowed).length;
      say(counts.allowed, `${scene.hits.length - denied} allowed`);
      say(counts.denied, `${denied} denied`);
      counts.denied.dataset.some = denied > 0;
      const label = `${byId[id].title}: ${note}.`;
      if (canvas.getAttribute("aria-label") !== label) canvas.setAttribute("aria-label", label);
      canvas.parentElement.dataset.over = scene.isOver;
      marks[name] = paintCloseup(canvas, scene, note);
    }
    return marks;
  };
}

/** Returns what got through in the busiest period, in words. */
function noteOf(id, { limit, busiest: { count } }, { scale }) {
  const most = id === "concurrency" ? `at most ${count} at once` : `${count} got through in ${period(scale)}`;
  return `${limitName(id)} ${limit}, ${most}`;
}
