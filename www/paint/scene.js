import { byId } from "../algorithms.js";
import { around, firstFrom, within } from "./visible.js";

/** The share of the view that is in the future, for the waits. */
const ahead = 0.14;

/** Returns the first and the last time in view. */
const viewOf = ({ span }, now) => ({ from: now - span * (1 - ahead), to: now + span * ahead });

/** Returns how long ago the busiest period was, if it would be shaded but is out of view. */
export function agoOf({ busiest: { at }, isOver }, run, now) {
  if (!isOver || at >= viewOf(run, now).from) return undefined;
  return `${Math.max(Math.floor((now - at) / 1_000), 1)} s ago`;
}

/** Returns the visible part of one simulation as plain data, which the painters then draw. */
export const sceneOf = (run, id, now) => partOf(run, id, now, viewOf(run, now));

/** The part of a period that a close-up shows on each side of it. */
const margin = 0.12;

/** Returns a period of one simulation, and a little on each side, as plain data. */
export function closeupOf(run, id, now, period) {
  const beside = margin * run.scale;
  const view = { from: period.from - beside, to: period.to + beside };
  return { ...partOf(run, id, now, view), period };
}

/** Returns the period of one scale in which the most got through, with its hits in the middle; the last one if none did. */
export function busiestPeriod({ hits, busiest }, { scale }, now) {
  const through = within(hits, busiest.at - scale + 1, busiest.at).filter(({ allowed }) => allowed);
  if (through.length === 0) return { from: now - scale, to: now };
  const middle = (through[0].at + through.at(-1).at) / 2;
  return { from: middle - scale / 2, to: middle + scale / 2 };
}

function partOf(run, id, now, { from, to }) {
  const simulation = run.simulations.get(id);
  const hits = within(simulation.hits, from, to);
  return {
    id,
    from,
    to,
    now,
    hits,
    firstHit: firstFrom(simulation.hits, from),
    levels: levelsOf(simulation, { from, to, now }),
    // The level of a token bucket is what is left, so the open amount is above it.
    isStock: id === "token_bucket",
    changes: within(simulation.changes, from, to),
    bans: simulation.bans.filter((ban) => ban.from < to && ban.until > from),
    limit: simulation.limit,
    edges: edgesOf(run, id, from, to, hits),
    busiest: simulation.busiest,
    isOver: simulation.isOver,
    ago: agoOf(simulation, run, now),
    scale: run.scale,
  };
}

/** Returns the levels in view, up to the current one. */
function levelsOf(simulation, { from, to, now }) {
  const levels = around(simulation.levels, from, Math.min(to, now));
  return to < now ? levels : [...levels, { at: now, level: simulation.level(), open: simulation.open }];
}

function edgesOf(run, id, from, to, hits) {
  const { windows } = byId[id];
  if (windows === "aligned") return run.edges.between(Math.max(from, 0), to);
  return windows === "own" ? [...new Set(hits.map(({ ends }) => ends))].filter((end) => end <= to) : [];
}
