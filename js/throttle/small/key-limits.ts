import { checkKey } from "../../checks.ts";
import { TollgateError, wrongAmount } from "../../errors/error.ts";
import { ReadPolicies } from "../../policy/policies.ts";
import { checkTime } from "../../time.ts";
import type { Costs, Decision, Key, Policies } from "../../types.ts";
import { checkPolicies, KeyStates, startWith } from "../../wasm/one-key.ts";
import type { Hits, Limits } from "../limits.ts";
import { runOnly } from "../run.ts";

/** How many keys an operation examines for ended states. */
const examined = 2;

/** Limits by the small wasm, which has the states of one key at a time. */
export class KeyLimits implements Limits {
  readonly #policies: ReadPolicies;
  readonly #clock: () => number;
  readonly #states = new Map<Key, KeyStates>();
  /** Where the search for ended states goes on. */
  #rest = this.#states.entries();
  #isDisposed = false;
  /** Why no hit can be decided: the core cannot be loaded, or rejects a policy. */
  #failure: unknown;
  loading: Promise<unknown> | undefined;

  constructor(policies: Policies, clock: () => number) {
    const read = ReadPolicies.of(policies);
    this.#policies = read;
    this.#clock = clock;
    const error = runOnly(read.policies);
    if (error) throw new TollgateError(error.code, error.message.replace("run;", 'run of "tollgate";'));
    try {
      checkPolicies(read);
    } catch (error) {
      if ((error as TollgateError).code !== "wasm_blocked") throw error;
      this.loading = this.#load();
    }
  }

  /** Loads the same core as JavaScript, where WebAssembly is forbidden. */
  async #load(): Promise<void> {
    try {
      startWith((await import("./without-wasm.ts")).instantiate);
      checkPolicies(this.#policies);
    } catch (error) {
      this.#failure = error;
    }
    this.loading = undefined;
  }

  hit(key: Key, cost: Costs): Decision {
    return this.#hit(key, cost, true);
  }

  peek(key: Key, cost: Costs): Decision {
    return this.#hit(key, cost, false);
  }

  ahead(key: Key, clock: () => number): Hits | undefined {
    if (this.loading) return undefined;
    const copy = new KeyLimits(this.#policies.policies as Policies, clock);
    const states = this.#states.get(key);
    if (states) copy.#states.set(key, new KeyStates(this.#policies, states.saved()));
    return copy;
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#states.clear();
  }

  #hit(key: Key, cost: Costs, charges: boolean): Decision {
    if (this.#isDisposed)
      throw new TollgateError("disposed", "this throttle was disposed of; make a new one");
    if (this.#failure) throw this.#failure;
    checkKey(key);
    if (typeof cost !== "number") throw wrongAmount("cost", cost);
    const now = checkTime(this.#clock());
    this.#sweep(now);
    const states = this.#states.get(key) ?? new KeyStates(this.#policies);
    const decision = states.hit(cost, now, charges);
    if (charges && decision.allowed) this.#states.set(key, states);
    return decision;
  }

  /** Removes ended states, a few at a time. */
  #sweep(now: number): void {
    for (let left = examined; left > 0; left -= 1) {
      const { done, value } = this.#rest.next();
      if (done) {
        this.#rest = this.#states.entries();
        return;
      }
      if (value[1].hasEnded(now)) this.#states.delete(value[0]);
    }
  }
}
