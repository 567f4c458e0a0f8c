import type { Candidate, CandidateSummary } from "../access-log/candidate.ts";
import { full, limiterAt } from "../access-log/candidate.ts";
import type { Entries, LineDetails } from "../access-log/entries.ts";
import { Table } from "../access-log/keys.ts";
import type { Planner } from "../access-log/log.ts";
import type { Traffic } from "../access-log/price.ts";
import { type SummaryOptions, Tally } from "../access-log/tally.ts";
import type { Gateway, LimitFacts } from "./gateway.ts";
import { LoggedRequest } from "./logged-request.ts";
import { NewKeys } from "./new-keys.ts";
import { Plans } from "./plans.ts";
import { SharedStates, type Store, sharesPolicies } from "./states.ts";

/** A limit of a rule for one key, with the number of the object that counts the key. */
interface KeyLimit extends LimitFacts {
  readonly object: number;
  readonly cost: number;
}

/**
 * The plan of a request: a rule that denies it for lack of a key, or the limits of each rule, which are one decision.
 * `address` is the object that counts new keys, where they are limited.
 */
type Plan =
  | { readonly deniedBy: number }
  | { readonly rules: readonly (readonly KeyLimit[])[]; readonly address: number | undefined };

/** The number of the plan without limits. */
const unlimited = 0;

/** The rules of a gateway, planned by the gateway itself. */
export class RulesCandidate implements Candidate {
  readonly name: string;
  /** Estimates the price. */
  traffic: Traffic | undefined;
  readonly #gateway: Gateway;
  readonly #limits: readonly LimitFacts[];
  readonly #stores: readonly Store[];
  readonly #objects = new Table();
  readonly #texts = new Table();
  readonly #plans: Plan[] = [];
  readonly #tally = new Tally();
  readonly #names: readonly string[];
  readonly #rules: { hits: number; denied: number }[];
  readonly #newKeys: NewKeys | undefined;
  #unlimited = 0;
  #refused = 0;
  #now = 0;
  /** Reads the line of the hit that is decided. */
  #details: () => LineDetails = () => ({ path: undefined, agent: undefined, user: undefined });

  /** `names` are those of the rules, in their order. */
  constructor(name: string, gateway: Gateway, names: readonly string[]) {
    this.name = name;
    this.#names = names;
    this.#gateway = gateway;
    this.#limits = gateway.limits();
    this.#rules = names.map(() => ({ hits: 0, denied: 0 }));
    if (this.#limits.some(({ newKeys }) => newKeys !== undefined)) this.#newKeys = new NewKeys();
    const sets = gateway.sets();
    const clock = () => this.#now;
    // An object keeps states by the names of policies, so sets with a policy in common share its budget.
    const shared = sharesPolicies(sets) ? new SharedStates(clock) : undefined;
    this.#stores = sets.map((policies) => shared?.store(policies) ?? limiterAt(policies, clock));
    this.#add("");
  }

  /** Returns a function that returns the number of the plan for the last line. */
  readonly planner: Planner = (format) => {
    const plans = new Plans(this.#gateway, new LoggedRequest(format), (plan) => this.#numberOf(plan));
    return () => plans.next();
  };

  replay(entries: Entries, from: number, to: number): void {
    const { times, plans, costs } = entries;
    for (let at = from; at < to; at += 1) {
      const plan = this.#plans[plans[at] as number];
      if (plan === undefined) continue;
      this.#now = times[at] as number;
      this.#details = () => entries.detailsOf(at);
      if (plans[at] === unlimited) this.#unlimited += 1;
      this.#tally.addHit(this.#now, this.#isAllowed(plan, costs[at] as number));
    }
  }

  summary(options: SummaryOptions): CandidateSummary {
    const nameOf = (object: number) => readable(this.#objects.text(object));
    const newKeys = this.#newKeys?.summary(nameOf, options.worst);
    return {
      name: this.name,
      ...this.#tally.summary(nameOf, options),
      ...(newKeys && { newKeys }),
      ...(this.traffic && { price: this.traffic.summary() }),
      unlimited: this.#unlimited,
      refused: this.#refused,
      rules: this.#rules.map(({ hits, denied }, rule) => ({
        rule,
        name: this.#names[rule] ?? "",
        hits,
        denied,
        shadow: this.#limits.some((limit) => limit.rule === rule && limit.shadow),
      })),
    };
  }

  /** Decides one rule after the other until one denies. Rules that only report are decided in any case. */
  #isAllowed(plan: Plan, weight: number): boolean {
    if ("deniedBy" in plan) {
      this.#refused += 1;
      this.#count(plan.deniedBy, true);
      return false;
    }
    let isAllowed = true;
    for (const limits of plan.rules) {
      const [{ rule, shadow }] = limits as [KeyLimit];
      if (!isAllowed && !shadow) continue;
      const allowed = this.#isAdmitted(limits, plan.address) && this.#decide(limits, weight);
      this.#count(rule, !allowed);
      if (!shadow) isAllowed &&= allowed;
    }
    return isAllowed;
  }

  /** Counts the keys of a rule of which nothing is stored, at their address. Returns whether it may bring them. */
  #isAdmitted(limits: readonly KeyLimit[], address: number | undefined): boolean {
    if (address === undefined) return true;
    for (const { newKeys, object, shadow } of limits) {
      if (newKeys === undefined || !this.#newKeys?.isNew(object, this.#now)) continue;
      if (this.#store(newKeys).hit(address, 1).allowed) continue;
      if (!shadow) this.#newKeys.deny(address);
      return false;
    }
    return true;
  }

  /** Decides the limits of a rule, all or nothing: a cost is charged only if all limits allow it. */
  #decide(limits: readonly KeyLimit[], weight: number): boolean {
    const isDenied = ({ set, object, cost }: KeyLimit) =>
      !this.#store(set).peek(object, cost * weight).allowed;
    const denied = limits.length === 1 ? [] : limits.filter(isDenied);
    if (denied.length > 0)
      for (let cancelled = denied.length; cancelled < limits.length; cancelled += 1)
        this.traffic?.addCancelled();
    let isAllowed = true;
    for (const { set, object, cost, shadow, keptFor } of denied.length > 0 ? denied : limits) {
      const { allowed, retryAfter, resetAfter, reason } = this.#store(set).hit(object, cost * weight);
      if (reason === "full") throw full();
      if (allowed) this.#newKeys?.store(object, this.#now + resetAfter, keptFor, this.#now);
      this.traffic?.add(this.#now, object, allowed, retryAfter, reason === "banned");
      if (!shadow) this.#tally.addKey(object, allowed, retryAfter, reason === "banned");
      if (!shadow && !allowed) this.#tally.sample(object, this.#details);
      isAllowed &&= allowed;
    }
    return isAllowed;
  }

  #store(set: number): Store {
    return this.#stores[set] as Store;
  }

  #count(rule: number, denied: boolean): void {
    const counts = this.#rules[rule];
    if (counts === undefined) return;
    counts.hits += 1;
    if (denied) counts.denied += 1;
  }

  /** Returns the number of a plan. */
  #numberOf(text: string): number {
    return this.#texts.find(text) ?? this.#add(text);
  }

  #add(text: string): number {
    this.#plans.push(text === "" ? { rules: [], address: undefined } : this.#parsed(text));
    return this.#texts.add(text);
  }

  /** Parses a plan: the number of a rule that denies, or lines of a limit, a cost and an object, grouped by rule. */
  #parsed(text: string): Plan {
    // Of an address in `deny`, which no rule denied.
    if (text === "!") return { deniedBy: -1 };
    if (!text.includes(" ")) return { deniedBy: Number.parseInt(text, 10) };
    const rules: KeyLimit[][] = [];
    const lines = text.split("\n");
    const address = lines.at(-1)?.startsWith("/") ? this.#objects.add(lines.pop() as string) : undefined;
    for (const line of lines) {
      const [limit = "", cost = ""] = line.split(" ", 2);
      const facts = this.#limits[Number(limit)] as LimitFacts;
      const object = this.#objects.add(line.slice(limit.length + cost.length + 2));
      const keyLimit = { ...facts, object, cost: Number(cost) };
      const last = rules.at(-1);
      if (last?.[0]?.rule === keyLimit.rule) last.push(keyLimit);
      else rules.push([keyLimit]);
    }
    return { rules, address };
  }
}

/** Returns an object's name for people: `/ip=9:192.0.2.1` is `ip 192.0.2.1`. */
function readable(object: string): string {
  const parts: string[] = [];
  let rest = object;
  for (;;) {
    const [whole, kind, length] = /^\/([^=]+)=(\d+):/.exec(rest) ?? [];
    if (whole === undefined) return parts.length === 0 ? object : parts.join(", ");
    // Lengths are in bytes.
    const value = Buffer.from(rest.slice(whole.length)).subarray(0, Number(length)).toString();
    parts.push(`${kind} ${value}`);
    rest = rest.slice(whole.length + value.length);
  }
}
