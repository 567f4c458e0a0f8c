import type { TollgateError } from "../errors/error.ts";
import type { LimiterKind } from "../events/messages.ts";
import { type Outage, outageOf } from "../events/outage.ts";
import type { RateLimiter } from "../limiter/limiter.ts";
import type { ReadPolicies } from "../policy/policies.ts";
import type { Costs, Decision, Key, Policy, ReserveOptions } from "../types.ts";
import { after } from "./after.ts";
import { misplacedOption } from "./errors.ts";
import type { AnyLimiter, Awaitable, GuardLimiter, GuardNamespace, GuardObject } from "./types.ts";

/** The decision of a reservation, and functions that close the reservation. */
export interface SettleableDecision {
  readonly decision: Decision;
  /** Charges the reservation: what was used, or all of it. */
  readonly settle: (used?: Costs) => unknown;
  /** Gives the reservation back. */
  readonly cancel: () => unknown;
}

/** A limiter with the policies that it decides by. */
export interface Source {
  /** Where the keys are. */
  readonly limiter: LimiterKind;
  /** The policies, for headers and the body of a denial. */
  readonly policies: readonly Policy[];
  /** Whether a policy counts only reservations, so that a request needs one until it has ended. */
  readonly isReserveOnly: boolean;
  /** Whether the numbers of an allowed request are only bounds. */
  readonly isInexact?: boolean;
  /** The outages of what decides. */
  readonly outage: Outage;
  /** Whether the guard notes in them that it responds, since the limiter does not. */
  readonly isWatched: boolean;
  hit(key: Key, costs: Costs): Awaitable<Decision>;
  reserve(key: Key, costs: Costs): Awaitable<SettleableDecision>;
}

/** Returns true for a limiter in memory, also for one of another copy of the package. */
export const isInMemory = (limiter: GuardLimiter): limiter is RateLimiter =>
  typeof (limiter as Partial<RateLimiter>).moveTo === "function";

const isReserveOnly = (policies: readonly Policy[]) =>
  policies.some(({ algorithm }) => algorithm === "concurrency");

/**
 * Returns a source over a limiter with the methods of `RateLimiter`; `plan` has the policies of each call, if they are not
 * the limiter's own.
 */
export function sourceOf(limiter: GuardLimiter, policies: readonly Policy[], plan?: ReadPolicies): Source {
  const call = plan?.policies;
  const keyOf = isInMemory(limiter) ? (key: Key) => key : storedKey;
  return {
    limiter: kindOf(limiter),
    policies,
    ...outagesOf(limiter),
    isReserveOnly: isReserveOnly(policies),
    hit: (key, costs) =>
      call === undefined ? limiter.hit(keyOf(key), costs) : limiter.hit(keyOf(key), costs, call),
    reserve(key, costs) {
      if (!canReserve(limiter)) throw noReservations();
      const options = plan && reserveOptions(plan);
      return after(limiter.reserve(keyOf(key), costs, options), ({ decision, id }) => ({
        decision,
        settle: (used) => (used === undefined ? limiter.settle(id) : limiter.settle(id, used)),
        cancel: () => limiter.cancel(id),
      }));
    },
  };
}

/** Returns the options of a reservation under a plan. By default it would last as long as one of the limiter's own. */
export function reserveOptions({ policies, origins }: ReadPolicies): ReserveOptions {
  const lifetimes = origins.flatMap(({ algorithm, scale }) => (algorithm === "concurrency" ? [scale] : []));
  return lifetimes.length === 0 ? { policies } : { policies, ttl: Math.max(...lifetimes) };
}

/** Returns the outages of a limiter: its own, or those that the guard notes. */
function outagesOf(limiter: GuardLimiter): Pick<Source, "outage" | "isWatched"> {
  const { publisher } = limiter as { readonly publisher?: { readonly outage?: Outage } };
  const own = publisher?.outage;
  return { outage: own ?? outageOf(limiter, "the limiter"), isWatched: own === undefined };
}

const kindOf = (limiter: GuardLimiter): LimiterKind =>
  (limiter as { readonly publisher?: { readonly limiter: LimiterKind } }).publisher?.limiter ?? "other";

/** Returns the key for a store outside the process, which takes only strings: the id of a user may be a number. */
const storedKey = (key: Key): Key => (typeof key === "bigint" || Number.isFinite(key) ? String(key) : key);

/** Returns true for a limiter, or an object, that has reservations. */
export const canReserve = <Limiter extends GuardLimiter | GuardObject>(
  limiter: Limiter,
): limiter is Limiter & Required<Pick<Limiter, "reserve" | "settle" | "cancel">> =>
  [limiter.reserve, limiter.settle, limiter.cancel].every((method) => typeof method === "function");

export const noReservations = (): TollgateError =>
  misplacedOption(
    "limiter",
    "without reserve, settle and cancel",
    'charge: "all", or a limiter that has them',
  );

/** Returns a source over Durable Objects, with the policies as an argument of each call. */
export function sourceOfObjects(namespace: GuardNamespace, policies: readonly Policy[]): Source {
  const objectOf = (key: Key) => namespace.getByName(String(key));
  return {
    limiter: "object",
    policies,
    outage: outageOf(namespace, "the Durable Object"),
    isWatched: true,
    isReserveOnly: isReserveOnly(policies),
    hit: (key, costs) => objectOf(key).hit(policies, costs),
    reserve(key, costs) {
      const object = objectOf(key);
      if (!canReserve(object)) throw noReservations();
      return after(object.reserve(policies, costs), ({ decision, id }) => ({
        decision,
        settle: (used) =>
          used === undefined ? object.settle(policies, id) : object.settle(policies, id, used),
        cancel: () => object.cancel(policies, id),
      }));
    },
  };
}

/** Returns true for a Durable Object namespace. */
export const isNamespace = (limiter: AnyLimiter): limiter is GuardNamespace =>
  typeof (limiter as Partial<GuardNamespace>).getByName === "function";

/** Returns true for a limiter, a Durable Object namespace or a rate-limit binding. */
export const isLimiter = (value: unknown): value is AnyLimiter =>
  typeof value === "object" &&
  value !== null &&
  ["hit", "getByName", "limit"].some((name) => typeof Reflect.get(value, name) === "function");
