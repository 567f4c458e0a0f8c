// Several keys of a request in one decision: all of its limits are charged, or none.

import { takenCaller } from "../events/caller.ts";
import { hitAll } from "../limiter/hit-all.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import type { AllHits, HitOf } from "../limiter/several-keys.ts";
import { isRecord } from "../policy/costs.ts";
import type { Costs, Decision, Key, Policy } from "../types.ts";
import { after, isPromise } from "./after.ts";
import { checkCosts } from "./costs.ts";
import { misplacedOption, wrongOption } from "./errors.ts";
import { isInMemory, type SettleableDecision, type Source, sourceOf } from "./source.ts";
import type { Awaitable, GuardLimiter, LimitOptions } from "./types.ts";

/** One of the limits, with the limiter that decides about it. */
export interface Limit<Request> extends Pick<LimitOptions<Request>, "key"> {
  readonly limiter: GuardLimiter & { readonly policies: readonly Policy[] };
  readonly cost: Costs | ((request: Request) => Awaitable<Costs>);
  readonly source: Source;
}

/** A limiter outside the process, which decides over several keys with others. */
interface Elsewhere {
  hitAll(hits: readonly object[]): Promise<AllHits>;
}

/** A key and its cost. */
export type KeyAndCost = readonly [key: Key, cost: Costs];

const accepted = ["key", "policy", "limiter", "cost"];

/** Options beside which `limits` has no effect. */
const instead = ["policy", "limiter", "policyFor", "ban", "fallback", "key", "cost"];

/** Reads and validates the option `limits`. */
export function readLimits<Request>(options: {
  readonly limits?: readonly LimitOptions<Request>[] | undefined;
}): readonly Limit<Request>[] | undefined {
  const { limits } = options;
  if (limits === undefined) return undefined;
  for (const name of instead)
    if (Reflect.get(options, name) !== undefined)
      throw misplacedOption(name, "beside limits", "it in each of the limits");
  if (!Array.isArray(limits) || limits.length === 0)
    throw wrongOption("limits", limits, "a list such as [{ key, policy }, { key, policy }]");
  const read = limits.map(readLimit<Request>);
  checkNames(read.flatMap(({ limiter }) => RateLimiter.read(limiter.policies).names));
  if (new Set(read.map(({ limiter }) => isInMemory(limiter))).size > 1)
    throw misplacedOption(
      "limiter",
      "in memory beside one that is not",
      "one kind of limiter for all limits",
    );
  return read;
}

/** Checks that no two policies have one name: headers and decisions tell them apart by it. */
function checkNames(names: readonly string[]): void {
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw wrongOption("limits", twice, "another name for one of the two policies");
}

function readLimit<Request>(given: LimitOptions<Request>): Limit<Request> {
  if (!isRecord(given)) throw wrongOption("limits", given, "objects such as { key, policy }");
  for (const name of Object.keys(given))
    if (!accepted.includes(name)) throw wrongOption("limits", name, `one of ${accepted.join(", ")}`);
  const { key, policy, cost = 1 } = given;
  if (key !== undefined && typeof key !== "function") throw wrongOption("key", key, "a function");
  if (typeof cost !== "function") checkCosts(cost);
  const limiter = readLimiter(given.limiter, policy);
  return { key, cost, limiter, source: sourceOf(limiter, limiter.policies) };
}

function readLimiter(
  given: LimitOptions<never>["limiter"],
  policy: LimitOptions<never>["policy"],
): Limit<never>["limiter"] {
  if (given === undefined) {
    if (policy === undefined)
      throw wrongOption(
        "policy",
        policy,
        '{ algorithm: "sliding_window", limit: 100, scale: "1m" } or the like',
      );
    return new RateLimiter(policy);
  }
  if (policy !== undefined)
    throw misplacedOption("policy", "beside a limiter that has its own", "one of them");
  const { policies } = given;
  if (policies === undefined || !(isInMemory(given) || "hitAll" in given))
    throw wrongOption("limiter", given, "a RateLimiter, RedisLimiter or StoreLimiter");
  return given as Limit<never>["limiter"];
}

/** Returns the source of a request that has these keys and costs under the limits. */
export function sourceOfLimits<Request>(
  limits: readonly Limit<Request>[],
  keys: readonly KeyAndCost[],
): Source {
  const [{ source: first, limiter }] = limits as readonly [Limit<Request>];
  const hits = limits.map(({ limiter }, at) => {
    const [key, cost] = keys[at] as KeyAndCost;
    return { limiter, key: isInMemory(limiter) ? key : String(key), cost };
  });
  return {
    limiter: first.limiter,
    policies: limits.flatMap(({ limiter }) => limiter.policies.map(asOneOfSeveral)),
    isReserveOnly: limits.some(({ source }) => source.isReserveOnly),
    outage: first.outage,
    isWatched: first.isWatched,
    hit() {
      // The decision about each key is published by its limiter.
      takenCaller();
      const decided = isInMemory(limiter)
        ? hitAll(hits as unknown as readonly HitOf<RateLimiter>[])
        : (limiter as unknown as Elsewhere).hitAll(hits);
      return after(decided, ({ decisions }) => merged(decisions));
    },
    reserve: () => reservedAll(limits, keys),
  };
}

/** Returns a policy for headers. Among several, none may count denied hits, of which headers say nothing. */
function asOneOfSeveral(policy: Policy): Policy {
  const { denied: _, ...rest } = policy as Policy & { readonly denied?: unknown };
  return rest as Policy;
}

/** Reserves every cost, and gives all back if one is denied or fails. */
function reservedAll<Request>(
  limits: readonly Limit<Request>[],
  keys: readonly KeyAndCost[],
): Awaitable<SettleableDecision> {
  const made: Awaitable<SettleableDecision>[] = [];
  const cancelAll = (all: readonly SettleableDecision[]) =>
    Promise.all(all.filter(({ decision }) => decision.allowed).map(({ cancel }) => cancel()));
  const finished = (all: readonly SettleableDecision[]): SettleableDecision => {
    const decision = merged(all.map(({ decision }) => decision));
    const namesOf = (at: number) => RateLimiter.read((limits[at] as Limit<Request>).limiter.policies).names;
    const one: SettleableDecision = {
      decision,
      settle: (used) =>
        Promise.all(
          all.map(({ settle }, at) => settle(used === undefined ? used : partOf(used, namesOf(at)))),
        ),
      cancel: () => cancelAll(all),
    };
    if (!decision.allowed) void cancelAll(all).catch(() => {});
    return one;
  };
  for (const [at, { source }] of limits.entries()) made.push(source.reserve(...(keys[at] as KeyAndCost)));
  if (!made.some(isPromise)) return finished(made as SettleableDecision[]);
  return Promise.allSettled(made).then((outcomes) => {
    const all = outcomes.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    const failed = outcomes.find((each) => each.status === "rejected");
    if (failed === undefined) return finished(all);
    void cancelAll(all).catch(() => {});
    throw failed.reason;
  });
}

/** Returns the part of a charge that is of these policies. */
const partOf = (used: Costs, names: readonly string[]): Costs =>
  isRecord(used) ? Object.fromEntries(names.map((name) => [name, used[name] ?? 0])) : used;

/** Returns the decision about all keys: that of the one that denies longest, or of the one with the least left. */
function merged(decisions: readonly Decision[]): Decision {
  const denied = decisions.filter(({ allowed }) => !allowed);
  const byStore = (denied.length > 0 ? denied : decisions).filter(({ reason }) => reason !== "error");
  if (byStore.length === 0) return (denied[0] ?? decisions[0]) as Decision;
  const binding = byStore.reduce((one, other) => (binds(other, one) ? other : one));
  if (denied.length === 0) return binding;
  return { ...binding, violated: byStore.flatMap(({ violated }) => violated) };
}

const binds = (one: Decision, other: Decision): boolean =>
  one.allowed ? one.remaining < other.remaining : one.retryAfter > other.retryAfter;
