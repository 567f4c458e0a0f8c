/** One key. What its place does not tell is null. */
export interface KeyRow {
  readonly key: string;
  /** In a Worker, what names the key where it is hashed: `--part` takes it. */
  readonly object?: string;
  /** The name of the limiter in Redis; empty in a Worker. */
  readonly limiter: string;
  /** The policy that binds most, or that denied last. */
  readonly policy: string;
  /** How much of the limit is used. */
  readonly used: number | null;
  readonly limit: number | null;
  /** What is charged in a second. */
  readonly rate: number | null;
  /** How often it was denied, in the time that the snapshot names. */
  readonly denied: number;
  /** At most so much of `denied` may be another key's. */
  readonly deniedError?: number;
  /** When its ban ends; 0 if none holds. */
  readonly bannedUntil: number;
  readonly reservations: number | null;
  readonly leases: number | null;
  /** When it becomes unused; null if that is not known. */
  readonly endsAt: number | null;
}

/** The keys of one limiter under one list of policies, or the requests of one rule. */
export interface GroupRow {
  readonly name: string;
  readonly policies: string;
  /** Allowed in a second; null before there are two readings. */
  readonly rate: number | null;
  /** Denied in a second. */
  readonly denialRate: number | null;
  /** How many keys; null in a Worker. */
  readonly keys: number | null;
  readonly banned: number | null;
  readonly reservations: number | null;
  readonly leases: number | null;
}

/** What a place says at one moment. */
export interface Snapshot {
  /** By the clock of the place, in milliseconds since the epoch. */
  readonly at: number;
  /** Where it is from: `redis 127.0.0.1:6379`. */
  readonly source: string;
  /** How much of it was read, in words. */
  readonly coverage: string;
  /** The same in numbers, for JSON. */
  readonly read: Readonly<Record<string, number | boolean | string>>;
  /** What `denied` of keys counts, in words. */
  readonly deniedSince: string;
  readonly groups: readonly GroupRow[];
  readonly keys: readonly KeyRow[];
}

/** The latest time that a date can have. */
const latest = 8.64e15;

const isCount = (value: unknown) => value === null || Number.isFinite(value);

/** Returns a snapshot of what another machine said; throws if a part of it cannot be shown. */
export function checked(snapshot: Snapshot): Snapshot {
  const { at, groups, keys } = snapshot;
  if (!(Math.abs(at) <= latest)) throw new TypeError("its time is not one");
  const { length } = [
    ...groups.flatMap(({ name, policies, ...counts }) => [
      typeof name === "string" && typeof policies === "string" && Object.values(counts).every(isCount),
    ]),
    ...keys.map(
      ({ key, limiter, policy, used, limit, denied }) =>
        [key, limiter, policy].every((text) => typeof text === "string") &&
        [used, limit, denied].every(isCount),
    ),
  ].filter((isValid) => !isValid);
  if (length > 0) throw new TypeError(`${length} of its rows cannot be shown`);
  return snapshot;
}

/** A place whose keys are shown. */
export interface TopSource {
  /** Reads it once more, at a bounded cost. */
  refresh(): Promise<Snapshot>;
  close(): void;
}
