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
export const grace = 250;

/** Returns the turns that a record has, without those that were missed; none if it is not a record of turns. */
export function turnsIn(stored: unknown, now: number): Turn[] {
  const { turns } = (stored ?? {}) as Partial<StoredTurns>;
  return Array.isArray(turns) ? turns.filter((turn) => isTurn(turn) && turn.due + grace > now) : [];
}

const isTurn = (turn: Partial<Turn> | null) =>
  typeof turn?.id === "string" && [turn.since, turn.due, turn.cost].every(Number.isFinite);

/** Returns the turns of those that have waited longer. */
export const olderThan = (mine: Turn, others: readonly Turn[]): readonly Turn[] =>
  others.filter(({ since, id }) => since < mine.since || (since === mine.since && id < mine.id));

/** Returns the record of some turns; undefined if there are none. */
export const recordOf = (turns: readonly Turn[]): StoredTurns | undefined =>
  turns.length > 0 ? { expiresAt: Math.max(...turns.map(({ due }) => due)) + grace, turns } : undefined;
