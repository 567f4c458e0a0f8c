/** The turn of a tab that waits for a key. */
export interface Turn {
  /** The tab, or the worker. */
  readonly id: string;
  /** Since when it waits without a turn. */
  readonly since: number;
  /** When it asks again. */
  readonly due: number;
  /** The cost of its first call. */
  readonly cost: number;
  /** Whether it would have been let through, but lets another tab go first. */
  readonly yields: boolean;
  /** When another tab that lets it go first called it; undefined if it has asked since. */
  readonly called?: number;
}

/** The turns of all tabs that wait for a key, as they are stored. */
export interface StoredTurns {
  readonly expiresAt: number;
  readonly turns: readonly Turn[];
}

/**
 * How long the others wait for a tab whose turn it is, in milliseconds. They wake it, since a browser slows the timers
 * of a tab in the background; one that was closed or frozen does not ask, and misses its turn.
 */
const grace = 250;

/** How long the others wait for a sign of a tab whose turn comes later: it may have been closed. */
const patience = 5_000;

/** Returns when the others stop waiting for a tab, unless it asks before. */
export const endOfTurn = ({ due, called }: Turn, now: number): number =>
  Math.min(Math.max(due, now) + grace, (called ?? now) + patience);

/** Returns the turns that a record has, without those that were missed; none if it is not a record of turns. */
export function turnsIn(stored: unknown, now: number): Turn[] {
  const { turns } = (stored ?? {}) as Partial<StoredTurns>;
  const isOpen = ({ due, called = now }: Turn) => due + grace > now && called + patience > now;
  return Array.isArray(turns) ? turns.filter((turn) => isTurn(turn) && isOpen(turn)) : [];
}

/** Returns turns with those marked that are called now: such a tab asks again, which removes the mark. */
export const calling = (turns: readonly Turn[], called: readonly Turn[], now: number): readonly Turn[] =>
  called.every((turn) => turn.called !== undefined)
    ? turns
    : turns.map((turn) => (called.includes(turn) ? { called: now, ...turn } : turn));

const isTurn = (turn: Partial<Turn> | null) =>
  typeof turn?.id === "string" && [turn.since, turn.due, turn.cost].every(Number.isFinite);

/** Returns the turns of those that have waited longer. */
export const olderThan = (mine: Turn, others: readonly Turn[]): readonly Turn[] =>
  others.filter(({ since, id }) => since < mine.since || (since === mine.since && id < mine.id));

/** Returns the record of some turns; undefined if there are none. */
export const recordOf = (turns: readonly Turn[]): StoredTurns | undefined =>
  turns.length > 0 ? { expiresAt: Math.max(...turns.map(({ due }) => due)) + grace, turns } : undefined;
