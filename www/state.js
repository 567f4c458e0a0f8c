import { mostAmount, packedActions, unpackedActions } from "./actions.js";
import { byId } from "./algorithms.js";
import { durations } from "./durations.js";
import { packed, unpacked } from "./times.js";

export const speeds = [0.1, 0.25, 0.5, 1, 2, 4, 10];
const traffics = ["edge", "steady", "poisson", "log", "none"];

/** The start of the page's clock, at an edge of all windows that the page offers. */
export const origin = 1_800_000_000_000;

/** The end of the page's clock, in milliseconds. */
export const longest = 600_000;

const among = (choices) => ({ read: (text) => choices.find((each) => String(each) === text) });
const whole = (least, most) => ({
  least,
  most,
  read(text) {
    const number = Number(text);
    return Number.isInteger(number) && number >= least && number <= most ? number : undefined;
  },
});
const times = { read: unpacked, write: packed };
const actions = { read: unpackedActions, write: packedActions };

/**
 * Every part of the state: its first value, and how it is read from the address and written to it. The first values are
 * what the page opens on: ten hits on each side of a window's edge, just after the second such burst.
 */
export const parts = {
  algorithm: { first: "fix_window", ...among(Object.keys(byId)) },
  limit: { first: 10, ...whole(1, 50) },
  scale: { first: 1_000, ...among(durations) },
  denied: { first: "free", ...among(["free", "count"]) },
  capacity: { first: 10, ...whole(1, 50) },
  rate: { first: 10, ...whole(1, 50) },
  per: { first: 1_000, ...among(durations) },
  run: { first: 500, ...among(durations) },
  cost: { first: 1, ...whole(0, 20) },
  banAfter: { first: 0, ...whole(0, 50) },
  banFor: { first: 2_000, ...among(durations) },
  amount: { first: 5, ...whole(1, mostAmount) },
  ttl: { first: 2_000, ...among(durations) },
  traffic: { first: "edge", ...among(traffics) },
  size: { first: 10, ...whole(1, 50) },
  pace: { first: 12, ...whole(1, 50) },
  seed: { first: 7, ...whole(1, 999) },
  speed: { first: 0.25, ...among(speeds) },
  at: { first: 3_600, ...whole(0, longest) },
  mine: { first: [], ...actions },
  log: { first: [], ...times },
};

export const firstState = () =>
  Object.fromEntries(Object.entries(parts).map(([name, { first }]) => [name, first]));

/** Returns the state as the hash of an address: the parts that differ from the first state, and always the time. */
export function toHash(state) {
  const query = new URLSearchParams();
  for (const [name, { first, write = String }] of Object.entries(parts)) {
    const text = write(state[name]);
    if (name === "at" || text !== write(first)) query.set(name, text);
  }
  return `#${query}`;
}

/** Parses the hash of an address. An invalid part has its first value. */
export function fromHash(hash) {
  const query = new URLSearchParams(hash.slice(1));
  const state = firstState();
  for (const [name, { read }] of Object.entries(parts)) {
    const text = query.get(name);
    const value = text === null ? undefined : read(text);
    if (value !== undefined) state[name] = value;
  }
  return state;
}
