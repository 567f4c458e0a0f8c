import { readFileSync } from "node:fs";
import * as rust from "../../build/worker/tollgate.js";
import type { Policies } from "../index.ts";
import { isThrownByRust, Remade, type WasmModule } from "../wasm/wasm-module.ts";

/** The errors of a configuration: a field and a text each. */
export class Misconfigured extends Error {
  readonly problems: readonly (readonly [field: string, problem: string])[];

  constructor(problems: readonly (readonly [string, string])[]) {
    super(problems.map(([field, problem]) => `${field}: ${problem}`).join("; "));
    this.problems = problems;
  }
}

/** A limit of a rule. */
export interface LimitFacts {
  /** The position of the rule in the configuration. */
  readonly rule: number;
  readonly set: number;
  readonly shadow: boolean;
  /** The set that limits keys of which nothing is stored; undefined if there is no such limit. */
  readonly newKeys: number | undefined;
  /** How long a key is known at least, in milliseconds. */
  readonly keptFor: number;
}

/** The headers of a request. */
export interface RequestHeaders {
  get(name: string): string | undefined;
}

const workerModule: WasmModule<unknown> = {
  start: () => rust.initSync({ module: readFileSync(new URL("./tollgate-worker.wasm", import.meta.url)) }),
  reset: rust.__wbg_reset_state,
  isOwn: isThrownByRust,
  generation: 0,
};

/** A gateway by a configuration, in the wasm of the Worker. */
export class Gateway {
  readonly #gateway: Remade<rust.Gateway>;

  /** @throws {@link Misconfigured} with all errors of the table. */
  constructor(table: unknown) {
    try {
      this.#gateway = new Remade(workerModule, () => new rust.Gateway(JSON.stringify(table)));
    } catch (thrown) {
      throw Array.isArray(thrown) ? new Misconfigured(thrown) : thrown;
    }
  }

  get upstream(): string | undefined {
    return this.#gateway.call((gateway) => gateway.settings() as { upstream?: string }).upstream;
  }

  /** Returns the policies of each set that rules have. */
  sets(): readonly Policies[] {
    const sets = this.#gateway.call((gateway) => gateway.sets() as { policies: string }[]);
    return sets.map(({ policies }) => JSON.parse(policies));
  }

  /** Returns the limits of all rules, in the order of their numbers in plans. */
  limits(): readonly LimitFacts[] {
    return this.#gateway.call((gateway) => gateway.limits());
  }

  /** Returns a policy by its name, in the form that the Worker's objects take. */
  policy(name: string): Policies {
    const { policies } = this.#gateway.call(
      (gateway) => gateway.item("hit", [name], "key", 1) as { policies: string },
    );
    const list: Policies = JSON.parse(policies);
    return Array.isArray(list) && list.length === 1 ? list[0] : list;
  }

  /** Returns the object that counts the new keys of a request's address. */
  newKeysObject(headers: RequestHeaders): string {
    return this.#gateway.call((gateway) => gateway.newKeysObject(headers));
  }

  /** Returns the plan of a request: undefined if unlimited, the rule that denies it, or lines of limit, cost and object. */
  plan(method: string, path: string, headers: RequestHeaders): string | undefined {
    return this.#gateway.call((gateway) => gateway.plan(method, path, false, headers));
  }
}
