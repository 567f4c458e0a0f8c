import { TollgateError } from "../errors/error.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import { KnownPolicies } from "../policy/known-policies.ts";
import type { ReadPolicies } from "../policy/policies.ts";
import type { Policies, Policy } from "../types.ts";
import { isBinding, sourceOfBinding } from "./binding.ts";
import { misplacedOption, wrongOption } from "./errors.ts";
import { Plans } from "./plans.ts";
import { isLimiter, isNamespace, type Source, sourceOf, sourceOfObjects } from "./source.ts";
import type { AnyLimiter, GuardLimiter } from "./types.ts";

/** The sources of a guard: one for each limiter, and for each plan over it. */
export class Sources {
  readonly #policy: ReadPolicies | undefined;
  readonly #byLimiter = new WeakMap<object, BySource>();
  /** The sources in memory, if no limiter was passed. */
  readonly #own: BySource | undefined;
  readonly #hasBan: boolean;

  constructor(policy: Policies | undefined, limiter: unknown, hasPlans: boolean, hasBan: boolean) {
    this.#hasBan = hasBan;
    this.#policy = policy === undefined ? undefined : RateLimiter.read(policy);
    if (limiter === undefined) {
      const made = this.#policy && new RateLimiter(this.#policy.policies);
      this.#own = new BySource(made, this.#policy, hasPlans);
      return;
    }
    if (typeof limiter === "function") return;
    const bySource = this.#over(limiter, hasPlans);
    if (!hasPlans) bySource.of(undefined);
  }

  /** Returns the source for a limiter, and for the request's own policies if it has any. */
  of(limiter: unknown, policies: Policies | undefined): Source {
    return (this.#own ?? this.#over(limiter, policies !== undefined)).of(policies);
  }

  #over(limiter: unknown, hasPlans: boolean): BySource {
    if (!isLimiter(limiter)) throw wrongOption("limiter", limiter, limiterExpected);
    if (this.#hasBan && !isNamespace(limiter)) throw banElsewhere();
    let bySource = this.#byLimiter.get(limiter);
    if (bySource === undefined) {
      bySource = new BySource(limiter, this.#policy, hasPlans);
      this.#byLimiter.set(limiter, bySource);
    } else if (hasPlans) checkTakesPlans(limiter);
    return bySource;
  }
}

const banElsewhere = () =>
  misplacedOption(
    "ban",
    "beside a limiter with policies of its own",
    'one of its policies: { algorithm: "ban", after: 5, scale: "10m", for: "1h" }',
  );

const limiterExpected =
  "a limiter with the methods of RateLimiter, a Durable Object namespace such as env.LIMITERS, or a rate-limit binding";

/** The sources over one limiter: its own, and one for each plan. */
class BySource {
  readonly #own: Source | undefined;
  /** The policies of requests, each read once, with functions that return their sources. */
  readonly #known: KnownPolicies<{ readonly policies: readonly Policy[]; readonly source: () => Source }>;

  constructor(limiter: AnyLimiter | undefined, policy: ReadPolicies | undefined, hasPlans: boolean) {
    if (hasPlans && limiter !== undefined) checkTakesPlans(limiter);
    if (limiter !== undefined && (isNamespace(limiter) || isBinding(limiter))) {
      const sourceOver = (read: ReadPolicies) =>
        isNamespace(limiter) ? sourceOfObjects(limiter, read.policies) : sourceOfBinding(limiter, read);
      this.#known = knownBy((read) => {
        const source = sourceOver(read);
        return () => source;
      });
      this.#own = policy && sourceOver(policy);
      return;
    }
    const own = limiter?.policies === undefined ? policy : RateLimiter.read(limiter.policies);
    this.#own = own && sourceOf(limiter as GuardLimiter, own.policies);
    const plans = new Plans(limiter, own);
    this.#known = knownBy((read) => plans.sourceOf(read));
  }

  of(policies: Policies | undefined): Source {
    if (policies !== undefined) return this.#known.of(policies).source();
    if (this.#own === undefined) throw noPolicy();
    return this.#own;
  }
}

/** Returns the policies of requests, with a source for each by `sourceOf`. */
const knownBy = (sourceOf: (read: ReadPolicies) => () => Source) =>
  new KnownPolicies((policies) => {
    const read = RateLimiter.read(policies as Policies);
    return { policies: read.policies, source: sourceOf(read) };
  });

/** Throws if the limiter has its policies elsewhere and takes no others by their names. */
function checkTakesPlans(limiter: AnyLimiter): void {
  if (
    !isNamespace(limiter) &&
    (isBinding(limiter) || (limiter.policies === undefined && !("sibling" in limiter)))
  )
    throw misplacedOption(
      "policyFor",
      "over such a limiter",
      "limiter: (request) => the limiter of its plan",
    );
}

const noPolicy = () =>
  new TollgateError("invalid_option", "policy is required (neither the limiter nor policyFor has one)");
