import { leaseTtl } from "../core/generated.ts";
import { isInteger } from "../durations.ts";
import { TollgateError } from "../error.ts";
import { holderClock } from "../holder-clock.ts";
import { type AskIssuer, type Background, Leases } from "../leases.ts";
import { named, numbersOf } from "../numbers.ts";
import type { Decision } from "../types.ts";
import { isWellFormed } from "../well-formed.ts";
import { decisionOf, senseless } from "./decision.ts";

/** Asks the Worker for an operation on a key. */
type AskWorker = (
  operation: "hit" | "lease",
  item: { readonly key: string; readonly [field: string]: unknown },
) => Promise<unknown>;

/** What the Worker answers to `lease`. */
interface Leased {
  readonly decision: unknown;
  readonly lease: {
    readonly id: unknown;
    readonly amount: unknown;
    readonly life: unknown;
    readonly countsDown: unknown;
  } | null;
}

/** Nobody waits for a renewal or for what is given back. */
const background: Background = (work) => void work.catch(() => {});

/** How certain a denial is: the API does not say. */
const uncertain = 2;

/** The hits of a limiter that holds leases. */
export class LeasedHits {
  readonly #names: readonly string[];
  readonly #ask: AskWorker;
  /** There are none until the wasm is loaded, nor where it cannot be. */
  #leases: Leases | undefined;

  constructor(ttl: number, names: readonly string[], ask: AskWorker) {
    this.#names = names;
    this.#ask = ask;
    // A file of its own: a page without leases does not load it.
    import("./lease-core.ts")
      .then(({ leaseCore }) => {
        this.#leases = new Leases(leaseCore(ttl), holderClock());
      })
      .catch(() => {});
  }

  /** Decides a hit from what is held, or asks; `undefined` if it is none that may be leased. */
  hit(key: string, cost: unknown): Promise<Decision> | undefined {
    // The core would round a cost, and read each lone surrogate as the same character. The Worker rejects them.
    if (this.#leases === undefined || !isInteger(cost, 1) || !isWellFormed(key)) return undefined;
    return this.#hit(this.#leases, key, cost);
  }

  async #hit(leases: Leases, key: string, cost: number): Promise<Decision> {
    const ask: AskIssuer = (cost, report) =>
      report === undefined ? this.#plain(key, cost) : this.#renewed(key, cost, report);
    try {
      return named(await leases.hit(key, cost, ask, background), this.#names);
    } catch (error) {
      if (error instanceof TollgateError) throw error;
      throw new TollgateError("unanswered", String(error), { cause: error });
    }
  }

  async #plain(key: string, cost: number): Promise<string> {
    return this.#numbers(await this.#ask("hit", { key, cost }));
  }

  /** Sends a report, in which an id has no key, and returns the decision with the lease behind it. */
  async #renewed(key: string, cost: number, report: string): Promise<string> {
    const end = `.s${key}`;
    const [held, ...numbers] = report.split(",");
    const [used, size, ttl] = numbers.map(Number);
    const id = held ? held + end : undefined;
    const answer = (await this.#ask("lease", { key, cost, id, used, size, ttl })) as Leased;
    const decision = this.#numbers(answer.decision);
    if (answer.lease === null) return decision;
    const lease = answer.lease ?? {};
    if (typeof lease.id !== "string" || !lease.id.endsWith(end)) throw senseless("lease");
    const { id: named, amount, life, countsDown } = lease;
    if (!isInteger(amount) || !isInteger(life, 0, leaseTtl.max)) throw senseless("lease");
    return `${decision} ${named.slice(0, -end.length)},${amount},${life},${countsDown === true ? 1 : 0}`;
  }

  #numbers(answer: unknown): string {
    const decision = decisionOf(answer);
    const names = [decision.policy, ...decision.violated];
    if (!names.every((name) => this.#names.includes(name))) throw senseless("decision of these policies");
    return numbersOf(decision, this.#names, uncertain);
  }
}
