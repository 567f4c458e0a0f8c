import { make } from "../dom.js";
import { ago, count, nameOf, sum } from "./words.js";

/** Returns a table: the headings, numeric ones after `#`, and rows of cells. */
export function table(caption, headings, rows) {
  const isNumber = headings.map((heading) => heading.startsWith("#"));
  const kind = (at) => (isNumber[at] ? { class: "number" } : {});
  return make(
    "table",
    {},
    make("caption", { class: "unseen" }, caption),
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        ...headings.map((heading, at) => make("th", { scope: "col", ...kind(at) }, heading.replace("#", ""))),
      ),
    ),
    make(
      "tbody",
      {},
      ...rows.map((cells) =>
        make("tr", {}, ...cells.map((cell, at) => make("td", kind(at), ...[cell].flat()))),
      ),
    ),
  );
}

export const nothing = (text) => make("p", { class: "quiet" }, text);

/** Returns a button that opens the story of a key. */
const keyButton = ({ key, object }) =>
  make("button", { type: "button", class: "key", "data-object": object, title: "Show this key" }, key);

export function rulesTable(rules) {
  if (rules.length === 0) return nothing("Nothing was decided in the last day.");
  const rows = rules.map((rule) => {
    const [allowed, denied, errors] = ["allowed", "denied", "errors"].map((result) =>
      sum(rule.minutes[result]),
    );
    const all = allowed + denied + errors;
    const shadow = rule.mode === "shadow" ? [" ", make("span", { class: "tag" }, "shadow")] : [];
    return [
      [nameOf(rule), ...shadow],
      count(allowed),
      make("b", denied > 0 ? { class: "denied" } : {}, count(denied)),
      all === 0 ? "" : `${count((100 * denied) / all)}%`,
      errors === 0 ? "0" : make("b", { class: "errors" }, count(errors)),
      count(sum(rule.hours.denied)),
    ];
  });
  return table(
    "Rules",
    ["Rule and policies", "#Allowed", "#Denied", "#Share", "#Errors", "#Denied in a day"],
    rows,
  );
}

export function topTable(top) {
  if (top.length === 0) return nothing("No key was denied in the last hour.");
  const shown = ({ denied, error }) =>
    error === 0 ? count(denied) : `${count(denied - error)} to ${count(denied)}`;
  return table(
    "Most denied keys",
    ["Key", "#Denied"],
    top.slice(0, 10).map((key) => [keyButton(key), shown(key)]),
  );
}

export function denialsTable(denials, now) {
  if (denials.length === 0) return nothing("Nothing was denied in the last day.");
  const rows = denials
    .slice(0, 10)
    .map((denial) => [
      [keyButton(denial), make("div", { class: "quiet" }, nameOf(denial))],
      reason(denial),
      ago(denial.at, now),
    ]);
  return table("Denied last", ["Key", "Why", "#When"], rows);
}

/** Returns why a hit was denied. */
export function reason({ policy, policies, remaining, limit, cost, banned, times, mode }) {
  const names = policies.join(", ") || policy;
  const why = banned ? `banned by ${names}` : `${names}: ${count(remaining)} of ${count(limit)} left`;
  const more = [
    cost === 1 ? "" : `cost ${count(cost)}`,
    times === 1 ? "" : `${count(times)} times`,
    mode === "shadow" ? "let through" : "",
  ].filter(Boolean);
  return [why, ...(more.length === 0 ? [] : [make("div", { class: "quiet" }, more.join(" · "))])];
}
