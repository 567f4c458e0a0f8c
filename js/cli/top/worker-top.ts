import { withReplies } from "../errors.ts";
import { limitOrNone } from "../key-target.ts";
import { requested, type WorkerPlace } from "../worker-api.ts";
import { checked, type GroupRow, type KeyRow, type Snapshot, type TopSource } from "./snapshot.ts";

/** The counts of a rule, oldest first. */
interface Series {
  readonly allowed: readonly number[];
  readonly denied: readonly number[];
}

/** What the watch endpoint of a Worker returns, as far as it is shown. */
interface Watched {
  readonly now: number;
  readonly keys: "hashed" | "plain";
  readonly step: { readonly seconds: number };
  readonly rules: readonly {
    readonly rule: string;
    readonly via: string;
    readonly policies: readonly string[];
    readonly mode: string;
    readonly seconds: Series;
  }[];
  readonly top: readonly {
    readonly key: string;
    readonly object: string;
    readonly denied: number;
    readonly error: number;
  }[];
  readonly denials: readonly Denial[];
}

/** The last denial of a key. */
interface Denial {
  readonly object: string;
  readonly at: number;
  readonly policy: string;
  readonly policies: readonly string[];
  readonly count: number;
  readonly limit: number;
  readonly retryAfter: number | null;
  readonly banned: boolean;
}

/** The most bans of which one reading asks whether they still hold. */
const mostBans = 50;

/** A decision of a hit of cost 0, as far as it tells of bans. */
interface Peeked {
  readonly reason?: string;
  readonly retryAfter?: number | null;
}

/** How many whole steps rates are taken from. */
const steps = 2;

/** The rules and the most denied keys of a Worker with `watch = true`. */
export class WorkerTop implements TopSource {
  readonly #place: WorkerPlace;
  readonly #host: string;

  constructor(place: WorkerPlace) {
    this.#place = place;
    this.#host = new URL(place.url).host;
  }

  refresh(): Promise<Snapshot> {
    return withReplies(this.#host, async () => checked(await this.#read()));
  }

  async #read(): Promise<Snapshot> {
    const watched = (await requested(this.#place, "watch")) as Watched;
    const { now, keys, step, rules, top, denials } = watched;
    const last = new Map(denials.map((denial) => [denial.object, denial]));
    const banned = await this.#bans(denials, now);
    return {
      at: now,
      source: `worker ${this.#host}`,
      coverage: `${top.length} most denied keys of the last hour${keys === "hashed" ? ", hashed" : ""}`,
      read: { keysRead: top.length, keys },
      deniedSince: "in the last hour",
      groups: rules.map((rule) => groupOf(rule, step.seconds)),
      keys: top.map((key) => rowOf(key, last.get(key.object), banned.get(key.object) ?? 0)),
    };
  }

  /** Returns the ends of the bans that hold, by object. A ban that denied lately may have been lifted, so the Worker is asked. */
  async #bans(denials: readonly Denial[], now: number): Promise<ReadonlyMap<string, number>> {
    const maybe = denials
      .filter(({ banned, at, retryAfter }) => banned && (retryAfter === null || at + retryAfter > now))
      .slice(0, mostBans);
    if (maybe.length === 0) return new Map();
    const items = maybe.map(({ object, policies }) => ({ parts: object, policy: policies, cost: 0 }));
    const answers = (await requested(this.#place, "peek", items)) as readonly Peeked[];
    return new Map(
      maybe.map(({ object }, at) => {
        const { reason, retryAfter = 0 } = answers[at] ?? {};
        return [object, reason === "banned" ? now + (retryAfter ?? Number.POSITIVE_INFINITY) : 0];
      }),
    );
  }

  close(): void {}
}

function groupOf({ rule, via, policies, mode, seconds }: Watched["rules"][number], step: number): GroupRow {
  // The last step is not over yet.
  const rate = (counts: readonly number[]) =>
    counts.slice(-1 - steps, -1).reduce((sum, number) => sum + number, 0) / ((steps * step) / 1_000);
  return {
    name: `${rule === "" ? via : rule}${mode === "shadow" ? " (shadow)" : ""}`,
    policies: policies.join(" + "),
    rate: rate(seconds.allowed),
    denialRate: rate(seconds.denied),
    keys: null,
    banned: null,
    reservations: null,
    leases: null,
  };
}

function rowOf(
  { key, object, denied, error }: Watched["top"][number],
  last: Denial | undefined,
  bannedUntil: number,
): KeyRow {
  const limit = last === undefined ? null : limitOrNone(last.limit);
  return {
    key,
    object,
    limiter: "",
    policy: last?.policy ?? "",
    // A ban has no limit.
    used: limit === null ? null : (last?.count ?? null),
    limit,
    rate: null,
    denied,
    deniedError: error,
    bannedUntil,
    reservations: null,
    leases: null,
    endsAt: null,
  };
}
