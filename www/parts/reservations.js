import { mostAmount } from "../actions.js";
import { element, make, say } from "../dom.js";
import { changeInWords, outcome, span } from "../words.js";
import { announce } from "./announce.js";
import { durationField, numberField } from "./fields.js";
import { showGauge } from "./gauge.js";

/** How many closed reservations stay in the list. */
const closedShown = 3;

/** Controls for reservations of the visitor: reserve, settle, cancel, extend and refund. */
export function reservationControls(current, { act, change }) {
  const fields = { amount: numberField("amount", change), ttl: durationField("ttl", change) };
  element("reserving-fields").append(...Object.values(fields).map(({ field }) => field));
  const terms = ({ amount, ttl }) => ({ amount, ttl });
  element("reserve").addEventListener("click", () => act({ act: "reserve", ...terms(current().state) }));
  element("refund").addEventListener("click", () => act({ act: "refund", amount: current().state.amount }));
  const list = element("reservations");
  const rows = new Map();
  let simulation;
  /** How many changes were announced. */
  let announced = 0;

  /** Clears the rows for another simulation, whose reservations have the same numbers. */
  function begin(next) {
    simulation = next;
    announced = simulation.changes.length;
    rows.clear();
    list.replaceChildren();
  }

  function announceExpired() {
    for (const each of simulation.changes.slice(announced))
      if (each.what === "expired") announce(changeInWords(each));
    announced = simulation.changes.length;
  }

  function arrange(wanted) {
    for (const [entry, row] of rows) {
      if (wanted.includes(entry)) continue;
      row.item.remove();
      rows.delete(entry);
    }
    for (const entry of wanted) {
      if (rows.has(entry)) continue;
      const row = rowOf(entry, act, () => current().state);
      rows.set(entry, row);
      list.prepend(row.item);
    }
  }

  return {
    show(state) {
      for (const [name, { show }] of Object.entries(fields)) show(state[name]);
      element("refund").disabled = state.algorithm === "concurrency";
      say(element("reserve"), `Reserve ${state.amount}`);
      say(element("refund"), `Refund ${state.amount}`);
    },
    draw() {
      const { simulation: next, now } = current();
      if (next !== simulation) begin(next);
      announceExpired();
      arrange(listed(simulation.reservations));
      for (const row of rows.values()) row.draw(now);
      showGauge(current());
    },
  };
}

/** Returns all open reservations and the last closed ones, in order. */
function listed(reservations) {
  const closed = reservations.filter(({ what }) => what !== "open").slice(-closedShown);
  return reservations.filter((entry) => entry.what === "open" || closed.includes(entry));
}

function rowOf(entry, act, state) {
  const { number, amount } = entry;
  const name = `reservation ${number + 1}`;
  const used = make("input", {
    type: "number",
    min: 0,
    max: mostAmount,
    value: amount,
    inputmode: "numeric",
    "aria-label": `Used of ${name}`,
  });
  const button = (word, action) => {
    const made = make(
      "button",
      { type: "button", "aria-label": `${word} ${name}`, "data-act": word.toLowerCase() },
      word,
    );
    made.addEventListener("click", () => act({ number, ...action() }));
    return made;
  };
  const settle = button("Settle", () => ({ act: "settle", used: usedIn(used, amount) }));
  const acts = make(
    "span",
    { class: "acts" },
    // A slot is always released as a whole.
    ...(state().algorithm === "concurrency" ? [] : [make("label", {}, "used ", used)]),
    settle,
    button("Cancel", () => ({ act: "cancel" })),
    button("Extend", () => ({ act: "extend", ttl: state().ttl })),
  );
  used.addEventListener("keydown", ({ key }) => key === "Enter" && settle.click());
  const bar = make("span", { class: "share", "aria-hidden": "true" }, make("i"));
  const left = make("span", { class: "left" });
  const item = make(
    "li",
    { "data-number": number },
    bar,
    make("b", {}, `#${number + 1}: ${amount}`),
    left,
    acts,
  );

  /** Removes the buttons of a row, and moves the focus if it was on one of them. */
  function closeRow() {
    const isInside = acts.contains(document.activeElement);
    acts.remove();
    if (isInside) element("reserve").focus({ preventScroll: true });
  }

  return {
    item,
    draw(now) {
      const { what, charged = 0, ends } = entry;
      item.dataset.what = what;
      bar.style.setProperty("--charged", `${Math.min(charged / amount, 1) * 100}%`);
      say(left, what === "open" ? `${span(ends - now)} left` : outcome(entry));
      if (what !== "open" && acts.isConnected) closeRow();
    },
  };
}

/** Returns the typed amount; the whole amount if that is invalid. */
function usedIn(input, amount) {
  const value = input.valueAsNumber;
  return Number.isInteger(value) && value >= 0 && value <= mostAmount ? value : amount;
}
