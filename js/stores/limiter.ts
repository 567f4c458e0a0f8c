import { isPromise } from "../guard/after.ts";
import { wrongOption } from "../guard/errors.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import type { Decision, Policies, Policy } from "../types.ts";
import type { Awaitable, HitLimiter, LimiterSource, StoreNamespace, WindowAlgorithm } from "./types.ts";

export const isNamespace = (value: unknown): value is StoreNamespace =>
  typeof (value as Partial<StoreNamespace> | undefined)?.getByName === "function";

/** Returns a limiter over Durable Objects, with the policies as an argument of each call. */
export function objectsOf(namespace: StoreNamespace, policies: Policies): HitLimiter {
  const of = (key: string) => namespace.getByName(key);
  return {
    policies: Array.isArray(policies) ? policies : [policies as Policy],
    hit: (key, cost) => of(key).hit(policies, cost),
    peek: (key, cost) => of(key).peek(policies, cost),
    inc: (key, cost) => of(key).inc(policies, cost),
    set: (key, count) => of(key).set(policies, count),
    reset: (key) => of(key).reset(policies),
  };
}

/** The limiters of a store whose numbers come with each call: one for each distinct limit and window. */
export class LimitersByWindow {
  readonly #source: LimiterSource | undefined;
  readonly #algorithm: WindowAlgorithm;
  readonly #denied: "count" | "free";
  readonly #limiters = new Map<string, HitLimiter>();

  constructor(source: LimiterSource | undefined, algorithm: WindowAlgorithm, denied: "count" | "free") {
    if (source !== undefined && typeof source !== "function" && !isNamespace(source))
      throw wrongOption(
        "limiter",
        source,
        "a function from a policy to a limiter, or a Durable Object namespace",
      );
    this.#source = source;
    this.#algorithm = algorithm;
    this.#denied = denied;
  }

  of(name: string, limit: number, scale: number, algorithm: WindowAlgorithm = this.#algorithm): HitLimiter {
    const id = `${name} ${limit} ${scale} ${algorithm}`;
    let limiter = this.#limiters.get(id);
    if (limiter === undefined) {
      // A limit of 0 is not valid in a policy; the caller compares with it.
      limiter = this.#make({ name, algorithm, limit: Math.max(limit, 1), scale, denied: this.#denied });
      this.#limiters.set(id, limiter);
    }
    return limiter;
  }

  #make(policy: Policy): HitLimiter {
    const source = this.#source;
    if (source === undefined) return new RateLimiter(policy);
    return isNamespace(source) ? objectsOf(source, policy) : source(policy);
  }
}

/** Returns the used amount of a decision; after a denial, more than `most` and the limit. */
export const usedBy = ({ allowed, count, limit, remaining }: Decision, most = limit): number =>
  allowed ? limit - remaining : Math.max(count, limit + 1, most + 1);

/** Returns the wait after a denial; after an allowed hit, the time until no hit counts. */
export const waitOf = ({ allowed, retryAfter, resetAfter }: Decision): number =>
  allowed || !Number.isFinite(retryAfter) ? resetAfter : retryAfter;

/** Calls `next` with a value, at once if it is not a promise. */
export const after = <Value, Result>(
  value: Awaitable<Value>,
  next: (value: Value) => Result,
): Result | Promise<Result> => (isPromise(value) ? Promise.resolve(value).then(next) : next(value));
