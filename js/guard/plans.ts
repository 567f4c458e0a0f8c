import { inWords, TollgateError } from "../errors/error.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import type { ReadPolicies } from "../policy/policies.ts";
import type { Costs, Key } from "../types.ts";
import { isInMemory, reserveOptions, type Source, sourceOf } from "./source.ts";
import type { GuardLimiter } from "./types.ts";

/** How many limiters there are before those without keys are looked for. */
const firstSweep = 1_000;

const perName =
  "use a name for each plan: over a RemoteLimiter it chooses one of the Worker's policies, which has the numbers";

/** A limiter that can make another one over the same keys. */
interface Sibling {
  /**
   * Returns a limiter with other policies, over the same keys or with the same options. One without policies of its own
   * takes their names, since their numbers are elsewhere.
   */
  sibling?(policies: ReadPolicies["policies"]): GuardLimiter;
}

/**
 * The plans over one limiter, or in memory. Plans whose policies have the same shapes share a limiter, which gets the
 * numbers with each call: so an upgrade keeps what was used, and a thousand plans cost what one costs.
 */
export class Plans {
  readonly #limiter: (GuardLimiter & Sibling) | undefined;
  /** The limiters by the shapes of their policies. */
  readonly #byShapes = new Map<string, GuardLimiter>();
  /** The policies by name, where their numbers are elsewhere. */
  readonly #numbers = new Map<string, string>();
  #sweepAt = firstSweep;

  constructor(limiter: GuardLimiter | undefined, own: ReadPolicies | undefined) {
    this.#limiter = limiter;
    if (limiter === undefined || own === undefined) return;
    this.#byShapes.set(shapesOf(own), limiter);
    if (limiter.policies === undefined) this.#checkNumbers(own);
  }

  /** Returns a function that returns the source of a plan: it changes while there are other limiters. */
  sourceOf(plan: ReadPolicies): () => Source {
    const shapes = shapesOf(plan);
    let limiter: GuardLimiter | undefined;
    let [own, following]: Source[] = [];
    return () => {
      if (limiter === undefined || this.#byShapes.get(shapes) !== limiter) {
        const found = this.#limiterOf(plan, shapes);
        [own, following] = [this.#sourceOver(found, plan), undefined];
        limiter = found;
      }
      if (!isInMemory(limiter) || this.#byShapes.size === 1) return own as Source;
      following ??= this.#following(own as Source, limiter, plan);
      return following;
    };
  }

  #sourceOver(limiter: GuardLimiter, plan: ReadPolicies): Source {
    const isElsewhere = limiter.policies === undefined;
    if (isElsewhere) this.#checkNumbers(plan);
    return sourceOf(limiter, plan.policies, isElsewhere ? undefined : plan);
  }

  /** Throws if a name has two policies, where the name alone chooses the numbers, which are elsewhere. */
  #checkNumbers({ names, policies }: ReadPolicies): void {
    for (const [position, name] of names.entries()) {
      const numbers = JSON.stringify(policies[position]);
      const known = this.#numbers.get(name);
      if (known === undefined) this.#numbers.set(name, numbers);
      else if (known !== numbers)
        throw new TollgateError(
          "invalid_option",
          `policyFor: two policies are named ${inWords(name)}; ${perName}`,
        );
    }
  }

  #limiterOf(plan: ReadPolicies, shapes: string): GuardLimiter {
    let limiter = this.#byShapes.get(shapes);
    if (limiter === undefined) {
      if (this.#byShapes.size > this.#sweepAt) this.#sweep();
      limiter = this.#newLimiter(plan);
      this.#byShapes.set(shapes, limiter);
    }
    return limiter;
  }

  #newLimiter({ policies }: ReadPolicies): GuardLimiter {
    const limiter = this.#limiter;
    if (limiter === undefined) return new RateLimiter(policies);
    // A limiter of the caller's own gets every plan as the third argument.
    return limiter.sibling?.(policies) ?? limiter;
  }

  /** Drops limiters whose states have all ended; of those over a store, whose states are elsewhere, the oldest. */
  #sweep(): void {
    for (const [shapes, limiter] of this.#byShapes) {
      if (limiter === this.#limiter) continue;
      if (isInMemory(limiter)) {
        limiter.clean();
        if (limiter.size === 0) this.#byShapes.delete(shapes);
      } else if (this.#byShapes.size > firstSweep) this.#byShapes.delete(shapes);
    }
    this.#sweepAt = 2 * Math.max(firstSweep, this.#byShapes.size);
  }

  /**
   * Returns a source over one of several limiters in memory. A key is in one of them, with its states of all shapes, and
   * moves when its plan has other shapes: as in a store, where all are at the key.
   */
  #following(source: Source, limiter: RateLimiter, plan: ReadPolicies): Source {
    return {
      ...source,
      hit: (key, costs) => {
        this.#bring(key, limiter);
        return source.hit(key, costs);
      },
      reserve: (key, costs) => {
        this.#bring(key, limiter);
        const { decision, id } = limiter.reserve(key, costs, reserveOptions(plan));
        return {
          decision,
          settle: (used) => this.#settle(id, used),
          cancel: () => this.#settle(id, 0),
        };
      },
    };
  }

  #bring(key: Key, limiter: RateLimiter): void {
    if (limiter.has(key)) return;
    for (const other of this.#byShapes.values())
      if (isInMemory(other) && other.has(key)) {
        other.moveTo(limiter, key);
        return;
      }
  }

  /** Settles a reservation wherever its key is by now. */
  #settle(id: string, used?: Costs): void {
    for (const limiter of this.#byShapes.values())
      if (isInMemory(limiter) && limiter.settle(id, used) === "settled") return;
  }
}

/** Returns the text of the shapes of policies, and of whether denied hits count. */
function shapesOf({ origins, denied }: ReadPolicies): string {
  const shapes = origins.map(({ name, algorithm, scale }) =>
    algorithm === "concurrency" || algorithm === "ban" ? [name, algorithm] : [name, algorithm, scale],
  );
  return `${denied} ${shapes.join("\n")}`;
}
