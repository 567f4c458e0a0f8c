import { algorithms, duration } from "../algorithms.js";
import { element, make, say } from "../dom.js";
import { sceneOf } from "../paint/scene.js";
import { paintStrip } from "../paint/strip.js";

/** All six under the same traffic. */
export function comparison(current, change) {
  const strips = algorithms.map(({ id, title }) => {
    const canvas = make("canvas", { class: "strip", role: "img" });
    const passed = make("b", {});
    const busiest = make("span", { class: "busiest" });
    const choose = make("button", { type: "button", class: "plain" }, title);
    choose.addEventListener("click", () => change({ algorithm: id }));
    const heading = make("h3", {}, choose);
    const numbers = make("p", { class: "passed" }, passed, busiest);
    element("strips").append(make("li", { "data-algorithm": id }, heading, numbers, canvas));
    return { id, title, canvas, passed, busiest, choose };
  });

  return function draw() {
    const { run, state, now } = current();
    const marks = {};
    for (const { id, title, canvas, passed, busiest, choose } of strips) {
      const simulation = run.simulations.get(id);
      const { allowed, hits, limit } = simulation;
      const most = simulation.busiest.count;
      say(passed, `${allowed} of ${hits.length} let through`);
      say(busiest, `${most} in the busiest ${duration(state.scale)}`);
      busiest.dataset.over = most > limit;
      choose.setAttribute("aria-pressed", id === state.algorithm);
      const label = `${title}: ${allowed} of ${hits.length} hits let through, at the most ${most} within ${duration(state.scale)}.`;
      if (canvas.getAttribute("aria-label") !== label) canvas.setAttribute("aria-label", label);
      marks[id] = paintStrip(canvas, sceneOf(run, id, now));
    }
    return marks;
  };
}
