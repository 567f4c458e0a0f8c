import { durations } from "./durations.js";

/** The most actions of the visitor in an address. */
const mostActions = 2_000;

/** The largest amount that can be reserved, settled or given back. */
export const mostAmount = 50;

const amounts = { isValid: (value) => value >= 1 && value <= mostAmount };
const used = { isValid: (value) => value <= mostAmount };
const ttls = { isValid: (value) => durations.includes(value) };
const numbers = { isValid: (value, reserved) => value < reserved };

/** Every action but a hit, by its letter in the address: its name, and the numbers that follow the letter. */
const spellings = {
  R: ["reserve", { amount: amounts, ttl: ttls }],
  S: ["settle", { number: numbers, used }],
  C: ["cancel", { number: numbers }],
  E: ["extend", { number: numbers, ttl: ttls }],
  G: ["refund", { amount: amounts }],
};
const letters = Object.fromEntries(Object.entries(spellings).map(([letter, [act]]) => [act, letter]));

/** Returns actions, in order of time, as a short text. A hit is only the time since the action before it. */
export function packedActions(actions) {
  let before = 0;
  return actions
    .map(({ at, act, ...rest }) => {
      const step = (at - before).toString(36);
      before = at;
      const letter = letters[act];
      if (letter === undefined) return step;
      const names = Object.keys(spellings[letter][1]);
      return `${step}${letter}${names.map((name) => rest[name].toString(36)).join("-")}`;
    })
    .join(".");
}

/** Parses a text of actions; `undefined` if invalid. */
export function unpackedActions(text) {
  const items = text.split(".");
  if (items.length > mostActions) return undefined;
  const actions = [];
  let [at, reserved] = [0, 0];
  for (const item of items) {
    const action = unpackedAction(item, reserved);
    if (action === undefined) return undefined;
    at += action.step;
    if (!Number.isSafeInteger(at)) return undefined;
    if (action.act === "reserve") reserved += 1;
    const { step, ...rest } = action;
    actions.push({ at, ...rest });
  }
  return actions;
}

function unpackedAction(item, reserved) {
  const [, time, letter, written] = /^([0-9a-z]+)(?:([A-Z])([0-9a-z-]+))?$/.exec(item) ?? [];
  if (time === undefined) return undefined;
  const step = Number.parseInt(time, 36);
  if (letter === undefined) return { step, act: "hit" };
  const [act, expected = {}] = spellings[letter] ?? [];
  const fields = Object.entries(expected);
  const values = written.split("-").map((value) => Number.parseInt(value, 36));
  if (act === undefined || values.length !== fields.length) return undefined;
  const isValid = fields.every(
    ([, each], index) => Number.isInteger(values[index]) && each.isValid(values[index], reserved),
  );
  return isValid
    ? { step, act, ...Object.fromEntries(fields.map(([name], index) => [name, values[index]])) }
    : undefined;
}
