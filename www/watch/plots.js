import { make } from "../dom.js";
import { count, duration, sum, timeOf } from "./words.js";

const height = 100;
const results = ["allowed", "denied", "errors"];

const shape = (name, attributes, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
};

/** Adds series of several sources. */
export const joined = (all, length) =>
  Object.fromEntries(
    results.map((result) => [
      result,
      Array.from({ length }, (_, at) => sum(all.map((series) => series[result][at]))),
    ]),
  );

const totalsOf = (series) => series.allowed.map((_, at) => sum(results.map((result) => series[result][at])));

/** Returns a plot of bars: allowed, and on top of them denied and errors. */
export function plot(title, series, start, step) {
  const totals = totalsOf(series);
  const most = Math.max(1, ...totals);
  const words = results
    .map((result) => [result, sum(series[result])])
    .filter(([result, total]) => result !== "errors" || total > 0);
  const bars = totals.map((total, at) => bar(series, at, most, total, start + at * step, step));
  const end = start + totals.length * step;
  return make(
    "figure",
    {},
    make(
      "figcaption",
      {},
      make("strong", {}, title),
      make(
        "span",
        {},
        ...words.flatMap(([result, total]) => [make("b", { class: result }, count(total)), ` ${result}  `]),
      ),
    ),
    shape(
      "svg",
      {
        viewBox: `0 0 ${totals.length} ${height}`,
        preserveAspectRatio: "none",
        class: "plot",
        role: "img",
        "aria-label": `${title}: ${words.map(([result, total]) => `${count(total)} ${result}`).join(", ")}. At most ${count(most)} in ${duration(step)}.`,
      },
      ...bars,
    ),
    make(
      "div",
      { class: "axis", "aria-hidden": "true" },
      make("span", {}, timeOf(start)),
      make("span", {}, `at most ${count(most)} in ${duration(step)}`),
      make("span", {}, timeOf(end)),
    ),
  );
}

function bar(series, at, most, total, time, step) {
  let top = height;
  const parts = results.map((result) => {
    const value = series[result][at];
    // A bar that is there can be seen, however small it is beside the highest.
    const length = value === 0 ? 0 : Math.max(1.5, (value / most) * (height - 4));
    top -= length;
    return shape("rect", { class: result, x: at + 0.1, width: 0.8, y: top, height: length });
  });
  const words = results.map((result) => `${count(series[result][at])} ${result}`).join(", ");
  const title = shape(
    "title",
    {},
    `${timeOf(time)} to ${timeOf(time + step)}: ${total === 0 ? "nothing" : words}`,
  );
  return shape("g", {}, shape("rect", { class: "hover", x: at, width: 1, y: 0, height }), ...parts, title);
}
