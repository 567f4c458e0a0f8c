import { byId } from "../algorithms.js";
import { around, firstFrom, within } from "./visible.js";

/** How much of the view lies in the future: room for the waits. */
const ahead = 0.14;

/** What there is to see of one simulation at a moment: plain data, which the painters then draw. */
export function sceneOf(run, id, now) {
  const simulation = run.simulations.get(id);
  const from = now - run.span * (1 - ahead);
  const to = now + run.span * ahead;
  // Who waits from before the view may still wait in it.
  const hits = within(simulation.hits, from, to);
  return {
    id,
    from,
    to,
    now,
    hits,
    firstHit: firstFrom(simulation.hits, from),
    levels: [
      ...around(simulation.levels, from, now),
      { at: now, level: simulation.level(), open: simulation.open },
    ],
    // A token bucket's level is what is left, so that the open amount lies above it.
    isStock: id === "token_bucket",
    changes: within(simulation.changes, from, to),
    limit: simulation.limit,
    edges: edgesOf(run, id, from, to, hits),
    busiest: simulation.busiest,
    scale: run.scale,
  };
}

function edgesOf(run, id, from, to, hits) {
  const { windows } = byId[id];
  if (windows === "aligned") return run.edges.between(Math.max(from, 0), to);
  return windows === "own" ? [...new Set(hits.map(({ ends }) => ends))].filter((end) => end <= to) : [];
}
