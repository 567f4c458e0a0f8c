import { seeded } from "./random.js";

/** Generators of the times of hits, in order. */
export const generators = { steady, edge, poisson, log, none };

function* steady({ pace }) {
  for (let number = 0; ; number += 1) yield Math.floor((number * 1_000) / pace);
}

/** The share of a window that a burst takes: two of them fit into one period. */
const burst = 0.4;

/** Yields a burst before and a burst after every second edge, like a client that knows the windows. */
function* edge({ size, scale }, edges) {
  const gap = Math.max(1, Math.floor((scale * burst) / size));
  for (let number = 0; ; number += 2) {
    const middle = edges.at(number);
    for (let hit = -size; hit < size; hit += 1) yield Math.max(middle + hit * gap, 0);
  }
}

function* poisson({ pace, seed }) {
  const random = seeded(seed);
  for (let time = 0; ; ) {
    time += (-Math.log(1 - random()) * 1_000) / pace;
    yield Math.floor(time);
  }
}

function* log({ log: times }) {
  yield* times;
}

function* none() {}
