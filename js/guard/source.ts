import { RateLimiter } from "../limiter.ts";
import type { TollgateError } from "../tollgate-error.ts";
import type { Costs, Decision, Key, Policies, Policy } from "../types.ts";
import { after } from "./after.ts";
import { wrongOption } from "./errors.ts";
import type { AnyLimiter, Awaitable, GuardLimiter, GuardNamespace, GuardObject } from "./types.ts";

/** An amount that was set aside, and how to close it. */
export interface Held {
  readonly decision: Decision;
  /** Charges it. */
  readonly settle: () => unknown;
  /** Gives it back. */
  readonly cancel: () => unknown;
}

/** A limiter with the policies that it decides by. */
export interface Source {
  /** The policies, for headers and the body of a denial. */
  readonly policies: readonly Policy[];
  /** Whether a policy counts only what is reserved, so that a request has to hold its slot until it has ended. */
  readonly isHeld: boolean;
  hit(key: Key, costs: Costs): Awaitable<Decision>;
  reserve(key: Key, costs: Costs): Awaitable<Held>;
}

const isHeld = (policies: readonly Policy[]) => policies.some(({ algorithm }) => algorithm === "concurrency");

/** Returns a source over a limiter with the methods of `RateLimiter`; `call` goes with each call. */
export function sourceOf(limiter: GuardLimiter, policies: readonly Policy[], call?: Policies): Source {
  return {
    policies,
    isHeld: isHeld(policies),
    hit: (key, costs) => (call === undefined ? limiter.hit(key, costs) : limiter.hit(key, costs, call)),
    reserve(key, costs) {
      if (!canReserve(limiter)) throw noReservations();
      return after(limiter.reserve(key, costs, call && { policies: call }), ({ decision, id }) => ({
        decision,
        settle: () => limiter.settle(id),
        cancel: () => limiter.cancel(id),
      }));
    },
  };
}

/** Returns true for a limiter, or an object, that has reservations. */
export const canReserve = <Limiter extends GuardLimiter | GuardObject>(
  limiter: Limiter,
): limiter is Limiter & Required<Pick<Limiter, "reserve" | "settle" | "cancel">> =>
  [limiter.reserve, limiter.settle, limiter.cancel].every((method) => typeof method === "function");

export const noReservations = (): TollgateError =>
  wrongOption("limiter", "without reserve, settle and cancel", 'charge: "all", or a limiter that has them');

/** Returns a source over Durable Objects, each of which is asked with the policies. */
export function sourceOfObjects(namespace: GuardNamespace, policies: readonly Policy[]): Source {
  const objectOf = (key: Key) => namespace.getByName(String(key));
  return {
    policies,
    isHeld: isHeld(policies),
    hit: (key, costs) => objectOf(key).hit(policies, costs),
    reserve(key, costs) {
      const object = objectOf(key);
      if (!canReserve(object)) throw noReservations();
      return after(object.reserve(policies, costs), ({ decision, id }) => ({
        decision,
        settle: () => object.settle(policies, id),
        cancel: () => object.cancel(policies, id),
      }));
    },
  };
}

/** Returns true for a Durable Object namespace. */
export const isNamespace = (limiter: AnyLimiter): limiter is GuardNamespace =>
  typeof (limiter as Partial<GuardNamespace>).getByName === "function";

/** Returns true for whatever can be asked for a decision. */
export const isLimiter = (value: unknown): value is AnyLimiter =>
  typeof value === "object" &&
  value !== null &&
  (typeof (value as Partial<GuardLimiter>).hit === "function" || isNamespace(value as AnyLimiter));

/** Checks policies by the core, and returns a copy of them. */
export function checkedPolicies(policies: Policies): readonly Policy[] {
  const limiter = new RateLimiter(policies);
  limiter[Symbol.dispose]();
  return limiter.policies;
}
