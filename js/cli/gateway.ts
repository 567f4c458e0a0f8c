import { readFileSync } from "node:fs";
import * as rust from "../../build/worker/tollgate.js";
import type { Policies } from "../index.ts";

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
}

/** The headers of a request. */
export interface RequestHeaders {
  get(name: string): string | undefined;
}

let isLoaded = false;

/** A gateway by a configuration, in the wasm of the Worker. */
export class Gateway {
  readonly #gateway: rust.Gateway;

  /** @throws {@link Misconfigured} with all errors of the table. */
  constructor(table: unknown) {
    load();
    try {
      this.#gateway = new rust.Gateway(JSON.stringify(table));
    } catch (thrown) {
      throw Array.isArray(thrown) ? new Misconfigured(thrown) : thrown;
    }
  }

  get upstream(): string | undefined {
    return (this.#gateway.settings() as { upstream?: string }).upstream;
  }

  /** Returns the policies of each set that rules have. */
  sets(): readonly Policies[] {
    const sets = this.#gateway.sets() as { policies: string }[];
    return sets.map(({ policies }) => JSON.parse(policies));
  }

  /** Returns the limits of all rules, in the order of their numbers in plans. */
  limits(): readonly LimitFacts[] {
    return this.#gateway.limits();
  }

  /** Returns a policy by its name, in the form that the Worker's objects take. */
  policy(name: string): Policies {
    const { policies } = this.#gateway.item("hit", [name], "key", 1) as { policies: string };
    const list: Policies = JSON.parse(policies);
    return Array.isArray(list) && list.length === 1 ? list[0] : list;
  }

  /** Returns the plan of a request: undefined if unlimited, the rule that denies it, or lines of limit, cost and object. */
  plan(method: string, path: string, headers: RequestHeaders): string | undefined {
    return this.#gateway.plan(method, path, false, headers);
  }
}

function load(): void {
  if (isLoaded) return;
  rust.initSync({ module: readFileSync(new URL("./tollgate-worker.wasm", import.meta.url)) });
  isLoaded = true;
}
