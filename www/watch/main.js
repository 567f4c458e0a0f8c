import { element, make, say } from "../dom.js";
import { hasToken, Refused, setToken, watch } from "./api.js";
import { joined, plot } from "./plots.js";
import { forget, setBans, tell } from "./story.js";
import { denialsTable, rulesTable, topTable } from "./tables.js";
import { count, nameOf, sum } from "./words.js";

/** Between two questions, in milliseconds. Isolates report every five seconds. */
const period = 3_000;

let isPaused = false;
let view;
let timer;

/** Puts new content in the place of old, and leaves the focus where it is. */
function put(id, ...children) {
  const place = element(id);
  const { object } = document.activeElement?.dataset ?? {};
  const hadFocus = place.contains(document.activeElement);
  place.replaceChildren(...children);
  if (hadFocus && object) place.querySelector(`[data-object="${CSS.escape(object)}"]`)?.focus();
}

function show() {
  const { rules, start, step, top, denials, now } = view;
  put("rates", ...["allowed", "denied", "errors"].map((result) => rate(result, rules)));
  sources(rules);
  const chosen = element("source").value;
  const of = rules.filter((rule) => chosen === "" || idOf(rule) === chosen);
  const series = (name, length) =>
    joined(
      of.map((rule) => rule[name]),
      length,
    );
  put(
    "plots",
    plot("Last hour", series("minutes", 60), start.minutes, step.minutes),
    plot("Last day", series("hours", 24), start.hours, step.hours),
  );
  put("rules", rulesTable(rules));
  put("top", topTable(top));
  put("denials", denialsTable(denials, now));
  setBans(view.bans);
}

const idOf = (rule) => JSON.stringify([rule.via, rule.mode, nameOf(rule)]);

function rate(result, rules) {
  const total = sum(rules.flatMap(({ seconds }) => seconds[result]));
  return make(
    "li",
    {},
    make("b", { class: result }, count(total)),
    make("span", {}, `${result} in the last minute`),
  );
}

/** Offers all rules for the plots, and keeps the choice. */
function sources(rules) {
  const select = element("source");
  const ids = ["", ...rules.map(idOf)];
  if ([...select.options].map(({ value }) => value).join("\n") === ids.join("\n")) return;
  const { value } = select;
  select.replaceChildren(
    make("option", { value: "" }, "all rules"),
    ...rules.map((rule) => make("option", { value: idOf(rule) }, nameOf(rule))),
  );
  select.value = ids.includes(value) ? value : "";
}

/** Asks the Worker and shows what it says, again and again while the page is seen. */
async function follow() {
  clearTimeout(timer);
  if (!hasToken() || isPaused || document.hidden) return;
  try {
    view = await watch();
    if (!hasToken()) return;
    open(true);
    show();
    say(element("status"), `${view.keys === "hashed" ? "keys hashed, as in the log" : "keys in plain text"}`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (view === undefined || [401, 403, 404].includes(error.status)) return leave(error.message);
    say(element("status"), `${error.message}; trying again`);
  }
  timer = setTimeout(follow, period);
}

function open(isOpen) {
  if (element("live").hidden === !isOpen) return;
  element("live").hidden = !isOpen;
  element("entry").hidden = isOpen;
  element("pause").hidden = !isOpen;
  element("leave").hidden = !isOpen;
  if (isOpen) element("pause").focus();
  else element("token").focus();
}

/** Forgets the token and all that was shown. */
function leave(problem = "") {
  clearTimeout(timer);
  setToken(undefined);
  view = undefined;
  for (const id of ["rates", "plots", "rules", "top", "denials"]) element(id).replaceChildren();
  forget();
  say(element("status"), "");
  say(element("refused"), problem);
  open(false);
}

element("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  const { value } = element("token");
  element("token").value = "";
  say(element("refused"), "");
  setToken(value.trim());
  follow();
});
element("leave").addEventListener("click", () => leave());
element("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  say(element("pause"), isPaused ? "Go on" : "Pause");
  say(element("status"), isPaused ? "paused" : "");
  follow();
});
element("source").addEventListener("change", show);
element("find").addEventListener("submit", (event) => {
  event.preventDefault();
  tell({ [element("kind").value]: element("key").value.trim() });
});
element("live").addEventListener("click", ({ target }) => {
  const { object } = target.closest("button.key")?.dataset ?? {};
  if (object) tell({ parts: object });
});
document.addEventListener("visibilitychange", follow);
// A browser keeps a page in memory that it may go back to.
window.addEventListener("pagehide", () => leave());
element("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.style.colorScheme
    ? root.style.colorScheme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.style.colorScheme = isDark ? "light" : "dark";
});
say(element("host"), location.host);
