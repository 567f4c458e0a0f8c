import { algorithms, byId, duration } from "../algorithms.js";
import { element, make, say } from "../dom.js";
import { agoOf, sceneOf } from "../paint/scene.js";
import { paintStrip } from "../paint/strip.js";

/** Shows all algorithms under the same traffic. */
export function comparison(current, change) {
  const strips = algorithms.map(({ id, title }) => {
    const canvas = make("canvas", { class: "strip", role: "img" });
    const passed = make("b", {});
    const busiest = make("span", { class: "busiest" });
    const choose = make("button", { type: "button", class: "plain" }, title);
    choose.addEventListener("click", () => change({ algorithm: id }));
    const policy = make("span", { class: "note" });
    const heading = make("h3", {}, choose, policy);
    const numbers = make("p", { class: "passed" }, passed, busiest);
    element("strips").append(make("li", { "data-algorithm": id }, heading, numbers, canvas));
    return { id, title, canvas, policy, passed, busiest, choose };
  });

  // Only strips in view are painted.
  const seen = new Set();
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
  });
  for (const { canvas } of strips) observer.observe(canvas);

  return function draw({ unseen = false } = {}) {
    const { run, state, now } = current();
    const marks = {};
    for (const { id, title, canvas, policy, passed, busiest, choose } of strips) {
      const simulation = run.simulations.get(id);
      const { allowed, hits } = simulation;
      say(policy, numbersOf(id, state));
      say(passed, `${allowed} of ${hits.length} let through`);
      const most = busiestOf(id, simulation, state);
      const ago = agoOf(simulation, run, now);
      say(busiest, most);
      busiest.dataset.over = simulation.isOver;
      choose.setAttribute("aria-pressed", id === state.algorithm);
      const label = `${title}: ${allowed} of ${hits.length} hits let through, ${most}${ago ? `, ${ago}` : ""}.`;
      if (canvas.getAttribute("aria-label") !== label) canvas.setAttribute("aria-label", label);
      if (unseen || seen.has(canvas)) marks[id] = paintStrip(canvas, sceneOf(run, id, now));
    }
    return marks;
  };
}

const busiestOf = (id, { busiest: { count } }, { scale }) =>
  id === "concurrency" ? `at most ${count} at once` : `${count} in the busiest ${duration(scale)}`;

/** Returns the numbers of a strip in words: those of a bucket or of a window. */
export function numbersOf(id, { limit, scale, capacity, rate, per, run }) {
  if (id === "concurrency") return `${limit} at once, ${duration(run)} each`;
  return byId[id].fields.includes("capacity")
    ? `${capacity} at once, ${rate} per ${duration(per)}`
    : `${limit} in ${duration(scale)}`;
}
