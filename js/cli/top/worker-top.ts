import { requested, type WorkerPlace } from "../worker-api.ts";
import type { GroupRow, KeyRow, Snapshot, TopSource } from "./snapshot.ts";

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
  readonly denials: readonly {
    readonly object: string;
    readonly at: number;
    readonly policy: string;
    readonly count: number;
    readonly limit: number;
    readonly retryAfter: number | null;
    readonly banned: boolean;
  }[];
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

  async refresh(): Promise<Snapshot> {
    const watched = (await requested(this.#place, "watch")) as Watched;
    const { now, keys, step, rules, top, denials } = watched;
    const last = new Map(denials.map((denial) => [denial.object, denial]));
    return {
      at: now,
      source: `worker ${this.#host}`,
      coverage: `${top.length} most denied keys of the last hour${keys === "hashed" ? ", hashed" : ""}`,
      read: { keysRead: top.length, keys },
      deniedSince: "in the last hour",
      groups: rules.map((rule) => groupOf(rule, step.seconds)),
      keys: top.map((key) => rowOf(key, last.get(key.object))),
    };
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
  last: Watched["denials"][number] | undefined,
): KeyRow {
  const until = last?.retryAfter == null ? 0 : last.at + last.retryAfter;
  return {
    key,
    object,
    limiter: "",
    policy: last?.policy ?? "",
    used: last?.count ?? null,
    limit: last?.limit ?? null,
    rate: null,
    denied,
    deniedError: error,
    bannedUntil: last?.banned ? until : 0,
    reservations: null,
    leases: null,
    endsAt: null,
  };
}
