import { byId } from "../algorithms.js";
import { around, firstFrom, within } from "./visible.js";

/** The share of the view that is in the future, for the waits. */
const ahead = 0.14;

/** Returns the first and the last time in view. */
const viewOf = ({ span }, now) => ({ from: now - span * (1 - ahead), to: now + span * ahead });

/** Returns how long ago the busiest period was, if it would be shaded but is out of view. */
export function agoOf({ busiest: { count, at }, limit }, run, now) {
  if (count <= limit || at >= viewOf(run, now).from) return undefined;
  return `${Math.max(Math.floor((now - at) / 1_000), 1)} s ago`;
}

/** Returns the visible part of one simulation as plain data, which the painters then draw. */
export function sceneOf(run, id, now) {
  const simulation = run.simulations.get(id);
  const { from, to } = viewOf(run, now);
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
    // The level of a token bucket is what is left, so the open amount is above it.
    isStock: id === "token_bucket",
    changes: within(simulation.changes, from, to),
    limit: simulation.limit,
    edges: edgesOf(run, id, from, to, hits),
    busiest: simulation.busiest,
    ago: agoOf(simulation, run, now),
    scale: run.scale,
  };
}

function edgesOf(run, id, from, to, hits) {
  const { windows } = byId[id];
  if (windows === "aligned") return run.edges.between(Math.max(from, 0), to);
  return windows === "own" ? [...new Set(hits.map(({ ends }) => ends))].filter((end) => end <= to) : [];
}
