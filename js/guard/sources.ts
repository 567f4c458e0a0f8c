import { TollgateError } from "../errors/error.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import type { Policies, Policy } from "../types.ts";
import { wrongOption } from "./errors.ts";
import { checkedPolicies, isLimiter, isNamespace, type Source, sourceOf, sourceOfObjects } from "./source.ts";
import type { AnyLimiter } from "./types.ts";

/** The most distinct policies of a guard. More are an error, so that memory does not leak. */
const most = 1_000;

/** The limiters of a guard, one for each distinct policy. */
export class Sources {
  readonly #policy: readonly Policy[] | undefined;
  readonly #byLimiter = new WeakMap<object, ByPolicy>();
  /** The limiters in memory, if no limiter was passed. */
  readonly #own: ByPolicy | undefined;

  readonly #hasBan: boolean;

  constructor(policy: Policies | undefined, limiter: unknown, hasPlans: boolean, hasBan: boolean) {
    this.#hasBan = hasBan;
    if (limiter === undefined) {
      this.#own = new ByPolicy(undefined, policy);
      return;
    }
    this.#policy = policy === undefined ? undefined : checkedPolicies(policy);
    if (typeof limiter === "function") return;
    const byPolicy = this.#over(limiter);
    if (hasPlans) byPolicy.checkTakesPlans();
    else byPolicy.of(undefined);
  }

  /** Returns the source for a limiter, and for the request's own policies if it has any. */
  of(limiter: unknown, policies: Policies | undefined): Source {
    return (this.#own ?? this.#over(limiter)).of(policies);
  }

  #over(limiter: unknown): ByPolicy {
    if (!isLimiter(limiter)) throw wrongOption("limiter", limiter, limiterExpected);
    if (this.#hasBan && !isNamespace(limiter)) throw banElsewhere();
    let byPolicy = this.#byLimiter.get(limiter);
    if (byPolicy === undefined) {
      byPolicy = new ByPolicy(limiter, this.#policy);
      this.#byLimiter.set(limiter, byPolicy);
    }
    return byPolicy;
  }
}

const banElsewhere = () =>
  wrongOption(
    "ban",
    "beside a limiter with policies of its own",
    'one of its policies: { algorithm: "ban", after: 5, scale: "10m", for: "1h" }',
  );

const limiterExpected =
  "a limiter with the methods of RateLimiter, or a Durable Object namespace such as env.LIMITERS";

/** The sources over one limiter, or over limiters in memory. */
class ByPolicy {
  readonly #limiter: AnyLimiter | undefined;
  readonly #first: Source | undefined;
  /** By the policies' text, since the caller may create the objects anew for each request. */
  readonly #sources = new Map<string, Source>();

  constructor(limiter: AnyLimiter | undefined, policy: Policies | undefined) {
    this.#limiter = limiter;
    const own = (limiter as { readonly policies?: readonly Policy[] } | undefined)?.policies ?? policy;
    if (own === undefined) return;
    this.#first = this.#make(own, true);
    this.#sources.set(textOf(own), this.#first);
  }

  of(policies: Policies | undefined): Source {
    if (policies === undefined) {
      if (this.#first === undefined) throw noPolicy();
      return this.#first;
    }
    const text = textOf(policies);
    let source = this.#sources.get(text);
    if (source === undefined) {
      if (this.#sources.size >= most) throw tooMany();
      source = this.#make(policies, false);
      this.#sources.set(text, source);
    }
    return source;
  }

  /** Throws if the limiter has its policies elsewhere, since such a limiter takes no others. */
  checkTakesPlans(): void {
    const limiter = this.#limiter;
    if (limiter !== undefined && !isNamespace(limiter) && limiter.policies === undefined)
      throw wrongOption("policyFor", "over such a limiter", "limiter: (request) => the limiter of its plan");
  }

  #make(policies: Policies, isOwn: boolean): Source {
    const limiter = this.#limiter;
    if (!isOwn) this.checkTakesPlans();
    // In memory, plans may differ in anything: each has its own limiter.
    if (limiter === undefined || (!isOwn && limiter instanceof RateLimiter)) {
      const made = new RateLimiter(policies);
      return sourceOf(made, made.policies);
    }
    const checked = isOwn ? (policies as readonly Policy[]) : checkedPolicies(policies);
    if (isNamespace(limiter)) return sourceOfObjects(limiter, checked);
    return sourceOf(limiter, checked, isOwn ? undefined : checked);
  }
}

const textOf = (policies: Policies) => JSON.stringify(Array.isArray(policies) ? policies : [policies]);

const noPolicy = () =>
  new TollgateError("invalid_option", "policy is required (neither the limiter nor policyFor has one)");

const tooMany = () =>
  wrongOption("policyFor", `policy number ${most + 1}`, "a few plans instead of a policy for each request");
