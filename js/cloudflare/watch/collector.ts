import { SpaceSaving } from "../../metrics/space-saving.ts";
import type { Decision } from "../../types.ts";
import { type Numbers, named } from "../../wasm/decision-numbers.ts";
import type { TollgateEnv } from "../env.ts";
import type { LimitCheck } from "../gateway/isolate.ts";
import type { Via } from "../log.ts";
import { ruleLabels } from "./labels.ts";
import type { Counts, Denial, Report, Result, Source } from "./report.ts";

/** How long an isolate collects before it sends a report, in milliseconds. */
const period = 5_000;

/** The most keys of a report: its size and its work are bounded, whatever is denied. */
const mostKeys = 100;

/** The most keys of which a report has what they were denied for. */
const mostDenials = 200;

/** The most sources of a report. Rules are fewer; lists of policies in calls may be any. */
const mostSources = 500;

/** A denial to count: the object's name, the decision, and the cost. */
export interface Denied {
  readonly object: string;
  readonly decision: Decision;
  readonly cost: number;
}

/** What a collector needs of the request that brings a decision. */
export interface Place {
  readonly env: TollgateEnv;
  readonly background: (work: Promise<unknown>) => void;
}

/** What a collector needs of its isolate. */
export interface Collecting {
  /** The configuration. */
  readonly json: string;
  /** Returns the key of an object as the logs have it. */
  readonly logged: (object: string, env: TollgateEnv) => string;
  /** Returns the id of an object. */
  readonly idIn: (env: TollgateEnv, object: string) => string;
  readonly namesOf: (check: LimitCheck) => readonly string[];
  readonly send: (report: Report, env: TollgateEnv) => Promise<unknown>;
}

/** Counts the decisions of an isolate, and reports them to the watch object, at most once in five seconds. */
export class Collector {
  readonly #isolate: Collecting;
  readonly #labels: readonly string[];
  readonly #sources = new Map<string, Source>();
  #counts = new Map<Source, Counts>();
  #top = new SpaceSaving(mostKeys);
  #denials = new Map<string, Denial>();
  /** When the next report is due. */
  #due = Number.NEGATIVE_INFINITY;

  constructor(isolate: Collecting) {
    this.#isolate = isolate;
    this.#labels = ruleLabels(isolate.json);
  }

  /** Counts a decision under a rule of the gateway. */
  ofRule(check: LimitCheck, result: Result, place: Place, numbers?: Numbers): void {
    const { rule, set, shadow, object, cost } = check;
    const names = this.#isolate.namesOf(check);
    const source = this.#source(`${rule} ${set}`, () => ({
      via: "gateway",
      rule: this.#labels[rule] ?? "",
      policies: names,
      mode: shadow ? "shadow" : "enforce",
    }));
    const decision = numbers === undefined ? undefined : named(numbers, names);
    this.#add(source, result, place, decision && { object, decision, cost });
  }

  /** Counts a decision for a caller of the API or of RPC. */
  ofCall(via: Via, names: readonly string[], result: Result, place: Place, denied?: Denied): void {
    const source = this.#source(`${via} ${names.join("\0")}`, () => ({
      via,
      rule: "",
      policies: names,
      mode: "enforce",
    }));
    this.#add(source, result, place, denied);
  }

  #source(id: string, make: () => Source): Source {
    let source = this.#sources.get(id);
    if (source === undefined) {
      if (this.#sources.size >= mostSources) this.#sources.clear();
      source = make();
      this.#sources.set(id, source);
    }
    return source;
  }

  #add(source: Source, result: Result, place: Place, denied: Denied | undefined): void {
    const now = Date.now();
    let counts = this.#counts.get(source);
    if (counts === undefined) {
      counts = { allowed: 0, denied: 0, errors: 0 };
      this.#counts.set(source, counts);
    }
    counts[result] += 1;
    if (denied !== undefined) this.#deny(source, denied, now);
    this.#schedule(place, now);
  }

  #deny(source: Source, { object, decision, cost }: Denied, now: number): void {
    this.#top.add(object);
    const { via, rule, mode } = source;
    const { violated, policy, count, limit, remaining, retryAfter, reason } = decision;
    const id = `${mode} ${via} ${rule} ${violated.join()} ${object}`;
    const known = this.#denials.get(id);
    if (known === undefined && this.#denials.size >= mostDenials) return;
    this.#denials.set(id, {
      key: "",
      object,
      at: now,
      first: known?.first ?? now,
      times: (known?.times ?? 0) + 1,
      via,
      rule,
      mode,
      policies: violated,
      policy,
      count,
      limit,
      remaining,
      cost,
      retryAfter: Number.isFinite(retryAfter) ? retryAfter : null,
      banned: reason === "banned",
    });
  }

  /** Reports in five seconds, unless a report is due: a flood sends no more of them than quiet traffic. */
  #schedule({ env, background }: Place, now: number): void {
    // One that is late was cut off with its request, or the clock has moved.
    if (Math.abs(this.#due - now) <= 2 * period) return;
    this.#due = now + period;
    background(wait(period).then(() => this.#isolate.send(this.#taken(env), env)));
  }

  /** Returns the report, and begins the next one. Only now are keys hashed. */
  #taken(env: TollgateEnv): Report {
    const known = new Map<string, { readonly key: string; readonly object: string }>();
    const namesOf = (object: string) => {
      let names = known.get(object);
      if (names === undefined) {
        names = { key: this.#isolate.logged(object, env), object: this.#isolate.idIn(env, object) };
        known.set(object, names);
      }
      return names;
    };
    const report = {
      counts: [...this.#counts].map(([source, counts]) => ({ ...source, ...counts })),
      top: this.#top
        .top(mostKeys)
        .map(({ key, count, error }) => ({ ...namesOf(key), denied: count, error })),
      denials: [...this.#denials.values()].map((denial) => ({ ...denial, ...namesOf(denial.object) })),
    };
    this.#counts = new Map();
    this.#top = new SpaceSaving(mostKeys);
    this.#denials = new Map();
    this.#due = Number.NEGATIVE_INFINITY;
    return report;
  }
}

const wait = (time: number) => new Promise<void>((resolve) => setTimeout(resolve, time));
