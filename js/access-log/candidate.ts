import { type Policies, type Policy, RateLimiter, TollgateError } from "../index.ts";
import type { Entries } from "./entries.ts";
import type { Table } from "./keys.ts";
import type { PriceSummary, Traffic } from "./price.ts";
import { Story, type StorySummary } from "./story.ts";
import { type SummaryOptions, Tally, type TallySummary } from "./tally.ts";

/** The most keys of a limiter. */
const mostKeys = 16_000_000;

/** The result of one rule of a configuration. */
export interface RuleSummary {
  /** Its position in the configuration. */
  readonly rule: number;
  /** Its method and path, as they are written there. */
  readonly name: string;
  readonly hits: number;
  readonly denied: number;
  /** Whether it only reports what it would deny. */
  readonly shadow: boolean;
}

/** The hits that were denied since an address brought too many new keys. */
export interface NewKeysSummary {
  readonly denied: number;
  /** How many addresses brought too many. */
  readonly addresses: number;
  /** The addresses that were denied most often. */
  readonly worst: readonly { readonly address: string; readonly denied: number }[];
}

/** The result of a policy, or of the rules of a configuration. */
export interface CandidateSummary extends TallySummary {
  readonly name: string;
  /** The policies, if there are no rules. */
  readonly policies?: Policies;
  readonly rules?: readonly RuleSummary[];
  /** Hits that no rule limits. */
  readonly unlimited?: number;
  /** Hits that a rule denied because they lack a part of its key. The name is part of the JSON output. */
  readonly refused?: number;
  /** Hits that `newKeys` denied; left out if there are none. */
  readonly newKeys?: NewKeysSummary;
  /** The price on Cloudflare, if it is estimated. */
  readonly price?: PriceSummary;
  /** The story of the only key, if one was chosen. */
  readonly story?: StorySummary;
}

/** A policy, or the rules of a configuration, through which a log is replayed. */
export interface Candidate {
  readonly name: string;
  /** Replays the entries from one position to another. Times do not run back between calls. */
  replay(entries: Entries, from: number, to: number): void;
  summary(options: SummaryOptions): CandidateSummary;
}

/** Returns a limiter under the log's own time, with room for every key. */
export function limiterAt(policies: Policies, clock: () => number): RateLimiter {
  // Seldom cleaned: the keys of a log come back, and would take the freed memory again.
  const limiter = new RateLimiter(policies, { clock, maxKeys: mostKeys, onFull: "deny", cleanPeriod: "1d" });
  if (limiter.policies.some(({ algorithm }) => algorithm === "concurrency"))
    throw new TollgateError(
      "reserve_only",
      "a concurrency policy cannot be replayed: a log has no durations",
    );
  return limiter;
}

/** One policy, or several that are one decision, with a budget for each key. */
export class PolicyCandidate implements Candidate {
  readonly name: string;
  readonly policies: Policies;
  readonly keys: Table;
  readonly tally = new Tally();
  /** Estimates the price. */
  traffic: Traffic | undefined;
  readonly #limiter: RateLimiter;
  readonly #story: Story | undefined;
  #now = 0;

  /** `hasStory` tells whether there is only one key, whose hits are told one after the other. */
  constructor(name: string, policies: Policies, keys: Table, hasStory = false) {
    this.name = name;
    this.keys = keys;
    this.#story = hasStory ? new Story() : undefined;
    this.#limiter = limiterAt(policies, () => this.#now);
    this.policies = Array.isArray(policies) ? this.#limiter.policies : (this.#limiter.policies[0] as Policy);
  }

  replay(entries: Entries, from: number, to: number): void {
    const { times, keys, costs } = entries;
    for (let at = from; at < to; at += 1) {
      const key = keys[at] as number;
      if (key < 0) continue;
      const time = times[at] as number;
      this.#now = time;
      const { allowed, remaining, retryAfter, reason } = this.#limiter.hit(key, costs[at]);
      if (reason === "full") throw full();
      this.tally.add(time, key, allowed, retryAfter, reason === "banned");
      if (!allowed) this.tally.sample(key, () => entries.detailsOf(at));
      this.traffic?.add(time, key, allowed, retryAfter, reason === "banned");
      this.#story?.add(time, allowed, remaining, retryAfter);
    }
  }

  summary(options: SummaryOptions): CandidateSummary {
    return {
      name: this.name,
      policies: this.policies,
      ...this.tally.summary((key) => this.keys.text(key), options),
      ...(this.traffic && { price: this.traffic.summary() }),
      ...(this.#story && { story: this.#story.summary() }),
    };
  }
}

export const full = (): TollgateError =>
  new TollgateError("full", `more than ${mostKeys.toLocaleString("en")} keys are in use at once`);
