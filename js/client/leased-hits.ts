import { TollgateError } from "../errors/error.ts";
import { holderClock } from "../lease/holder-clock.ts";
import { type AskIssuer, Leases, unawaited } from "../lease/leases.ts";
import { isInteger } from "../policy/durations.ts";
import type { Decision } from "../types.ts";
import { named, numbersOf } from "../wasm/decision-numbers.ts";
import { leaseTtl } from "../wasm/generated.ts";
import { isWellFormed } from "../well-formed.ts";
import { decisionOf, invalidResponse } from "./decision.ts";

/** Sends an operation on a key to the Worker. */
type AskWorker = (
  operation: "hit" | "lease",
  item: { readonly key: string; readonly [field: string]: unknown },
) => Promise<unknown>;

/** The Worker's result of the operation `lease`. */
interface LeaseResult {
  readonly decision: unknown;
  readonly lease: {
    readonly id: unknown;
    readonly amount: unknown;
    readonly life: unknown;
    readonly countsDown: unknown;
  } | null;
}

/** The hits of a limiter with leases. */
export class LeasedHits {
  readonly #names: readonly string[];
  readonly #ask: AskWorker;
  readonly #onLocal: (decision: Decision) => Decision;
  /** `undefined` until the wasm is loaded, and where it cannot be. */
  #leases: Leases | undefined;

  /** `onLocal` is called with each decision that was made without a request, and returns it. */
  constructor(
    ttl: number,
    names: readonly string[],
    ask: AskWorker,
    onLocal: (decision: Decision) => Decision,
  ) {
    this.#names = names;
    this.#onLocal = onLocal;
    this.#ask = ask;
    // A file of its own, so that a page without leases does not load it.
    import("./lease-core.ts")
      .then(({ leaseCore }) => {
        this.#leases = new Leases(leaseCore(ttl), holderClock());
      })
      .catch(() => {});
  }

  /** Decides a hit from a lease or by the Worker; `undefined` if the hit cannot use a lease. */
  hit(key: string, cost: unknown): Promise<Decision> | undefined {
    // The core would round a cost, and read each lone surrogate as the same character. The Worker rejects them.
    if (this.#leases === undefined || !isInteger(cost, 1) || !isWellFormed(key)) return undefined;
    return this.#hit(this.#leases, key, cost);
  }

  async #hit(leases: Leases, key: string, cost: number): Promise<Decision> {
    const ask: AskIssuer = (cost, report) =>
      report === undefined ? this.#sendHit(key, cost) : this.#sendRenewal(key, cost, report);
    try {
      const decided = leases.hit(key, cost, ask, unawaited);
      const decision = named(await decided, this.#names);
      return typeof decided === "string" ? this.#onLocal(decision) : decision;
    } catch (error) {
      if (error instanceof TollgateError) throw error;
      throw new TollgateError("unanswered", String(error), { cause: error });
    }
  }

  async #sendHit(key: string, cost: number): Promise<string> {
    return this.#numbers(await this.#ask("hit", { key, cost }));
  }

  /** Sends a report, whose lease id is without its key, and returns the numbers of the decision and the lease. */
  async #sendRenewal(key: string, cost: number, report: string): Promise<string> {
    const keySuffix = `.s${key}`;
    const [shortId, ...numbers] = report.split(",");
    const [used, size, ttl] = numbers.map(Number);
    const id = shortId ? shortId + keySuffix : undefined;
    const result = (await this.#ask("lease", { key, cost, id, used, size, ttl })) as LeaseResult;
    const decision = this.#numbers(result.decision);
    if (result.lease === null) return decision;
    const { id: newId, amount, life, countsDown } = result.lease ?? {};
    if (typeof newId !== "string" || !newId.endsWith(keySuffix)) throw invalidResponse("lease");
    if (!isInteger(amount) || !isInteger(life, 0, leaseTtl.max)) throw invalidResponse("lease");
    return `${decision} ${newId.slice(0, -keySuffix.length)},${amount},${life},${countsDown === true ? 1 : 0}`;
  }

  /** Returns the numbers of a decision in JSON. Throws if it is invalid or of other policies. */
  #numbers(value: unknown): string {
    const decision = decisionOf(value);
    const names = [decision.policy, ...decision.violated];
    if (!names.every((name) => this.#names.includes(name)))
      throw invalidResponse("decision of these policies");
    return numbersOf(decision, this.#names);
  }
}
