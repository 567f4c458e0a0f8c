/** In an object or a list: there may be more. As a value: it may be any. */
export const more = Symbol("…");

const show = (value) => JSON.stringify(value, (_, each) => (typeof each === "symbol" ? "…" : each));

const met = new Set();

/** Fails unless all these places were come by: what is never reached is never checked. */
export function allMet(places) {
  const missed = places.find((place) => !met.has(place));
  if (missed) throw new Error(`${missed}: the statement is never reached`);
}

/** Fails unless the value is what the comment after it says. */
export function says(value, expected, place) {
  met.add(place);
  if (!matches(value, expected)) throw new Error(`${place}: says ${show(expected)}, but is ${show(value)}`);
}

/** Fails unless the work throws what the comment after it says; a text that ends in … is only how it begins. */
export async function saysThrown(work, expected, place) {
  met.add(place);
  let thrown = "nothing";
  try {
    await work();
  } catch (error) {
    thrown = String(error);
  }
  const isRight = expected.endsWith("…") ? thrown.startsWith(expected.slice(0, -1)) : thrown === expected;
  if (!isRight) throw new Error(`${place}: says it throws ${expected}, but it throws ${thrown}`);
}

function matches(value, expected) {
  if (expected === more) return true;
  if (typeof expected !== "object" || expected === null) return Object.is(value, expected);
  if (typeof value !== "object" || value === null) return false;
  return Array.isArray(expected) ? listMatches(value, expected) : objectMatches(value, expected);
}

function listMatches(value, expected) {
  const isOpen = expected.at(-1) === more;
  const known = isOpen ? expected.slice(0, -1) : expected;
  const fits = isOpen ? value.length >= known.length : value.length === known.length;
  return Array.isArray(value) && fits && known.every((each, at) => matches(value[at], each));
}

function objectMatches(value, expected) {
  const names = Object.keys(expected);
  const isClosed = !(more in expected);
  if (isClosed && Object.keys(value).length !== names.length) return false;
  return names.every((name) => name in value && matches(value[name], expected[name]));
}
