import type { Gateway } from "../../build/cloudflare/tollgate.js";
import type { Numbers } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import { isAddress, serviceNamed } from "./forward.ts";
import { say } from "./log.ts";
import { Rebuilt } from "./wasm.ts";

/** What is wrong with the configuration: a path and a problem each. */
export class Misconfigured extends Error {
  readonly mistakes: readonly (readonly [path: string, problem: string])[];

  constructor(mistakes: readonly (readonly [string, string])[]) {
    super(mistakes.map(([path, problem]) => (path ? `${path}: ${problem}` : problem)).join("\n"));
    this.mistakes = mistakes;
  }
}

/** What is to be asked of an object for a request. */
export interface Ask {
  readonly rule: number;
  readonly object: string;
  readonly set: number;
  readonly cost: number;
  readonly shadow: boolean;
  readonly allowOnError: boolean;
}

/** What is to be asked of an object for an item of the API. */
export interface Item {
  readonly object: string;
  readonly policies: string;
  readonly names: readonly string[];
  readonly amount: number;
  readonly of: string | undefined;
}

/** What one configuration comes to: read once, then asked about every request. */
export class Isolate {
  readonly upstream: string | undefined;
  readonly prefix: string;
  readonly timeout: number;
  /** The origins whose pages may call the HTTP API. */
  readonly origins: readonly string[];
  /** The policies of the rules as JSON, and their names. */
  readonly sets: readonly (readonly [policies: string, names: readonly string[]])[];
  #gateway: Rebuilt<Gateway>;
  #plainKeys: boolean;
  #ownSecret: string | undefined;

  constructor(config: unknown) {
    try {
      this.#gateway = new Rebuilt((rust) => new rust.Gateway(config));
    } catch (thrown) {
      throw Array.isArray(thrown) ? new Misconfigured(thrown) : thrown;
    }
    [this.upstream, this.prefix, this.timeout, this.#plainKeys, this.origins] = this.#gateway.call(
      (gateway) => gateway.settings(),
    ) as [string | undefined, string, number, boolean, string[]];
    this.sets = this.#gateway.call((gateway) => gateway.sets()) as [string, string[]][];
  }

  /** What is to be done with a request: nothing, refuse it under a rule, or ask. */
  plan({ method, headers }: Request, path: string): { readonly refusedBy: number } | Ask | undefined {
    const plan = this.#gateway.call((gateway) => gateway.plan(method, path, headers));
    if (plan === undefined) return undefined;
    if (plan.length === 1) return { refusedBy: plan[0] };
    const [rule, object, set, cost, shadow, allowOnError] = plan;
    return { rule, object, set, cost, shadow, allowOnError };
  }

  /** A denial that is remembered. */
  recall({ object, set, cost }: Ask, now: number): Numbers | undefined {
    return this.#gateway.call((gateway) => gateway.recall(object, set, cost, now));
  }

  /** Remembers a denial, if its policies allow it. */
  remember({ object, set, cost }: Ask, numbers: Numbers, now: number): void {
    this.#gateway.call((gateway) => gateway.remember(object, set, cost, numbers, now));
  }

  /** The headers that tell a client of a decision, and the body of a denial. */
  told(set: number, numbers: Numbers): { headers: [string, string][]; problem: string } {
    const words = this.#gateway.call((gateway) => gateway.told(set, numbers));
    const problem = words.pop() as string;
    const headers: [string, string][] = [];
    for (let at = 0; at < words.length; at += 2) headers.push([words[at] as string, words[at + 1] as string]);
    return { headers, problem };
  }

  /** The items of a request to the API, right or refused. Throws when the request as a whole makes no sense. */
  items(
    operation: string,
    body: unknown,
  ): { items: (Item | { code: string; message: string })[]; batch: boolean } {
    const list = this.#gateway.call((gateway) => gateway.items(operation, body)) as unknown[];
    const batch = list.pop() as boolean;
    return {
      batch,
      items: (list as unknown[][]).map((parts) => (parts.length === 2 ? refused(parts) : item(parts))),
    };
  }

  /** One item, as RPC brings it. */
  item(operation: string, names: string[], key: string, amount: number, of?: string): Item {
    return item(this.#gateway.call((gateway) => gateway.item(operation, names, key, amount, of)));
  }

  /** A key as logs may hold it. */
  logged(key: string, env: TollgateEnv): string {
    if (this.#plainKeys) return key;
    const secret = env.TOLLGATE_LOG_SECRET ?? env.TOLLGATE_TOKEN ?? this.#secret();
    return this.#gateway.call((gateway) => gateway.digest(secret, key));
  }

  #secret(): string {
    this.#ownSecret ??= crypto.randomUUID();
    return this.#ownSecret;
  }
}

const item = ([object, policies, names, amount, of]: unknown[]) =>
  ({ object, policies, names, amount, of }) as Item;

const refused = ([code, message]: unknown[]) => ({ code, message }) as { code: string; message: string };

/** An isolate has one configuration; tests have a few. */
const known = new Map<unknown, Isolate | Misconfigured>();

/** The isolate's configuration, read at its first request. Throws what is wrong with it, and logs that once. */
export function isolateOf(env: TollgateEnv): Isolate {
  const { TOLLGATE: config = {} } = env;
  let isolate = known.get(config);
  if (isolate === undefined) {
    isolate = read(config, env);
    if (known.size >= 16) known.clear();
    known.set(config, isolate);
  }
  if (isolate instanceof Misconfigured) throw isolate;
  return isolate;
}

function read(config: unknown, env: TollgateEnv): Isolate | Misconfigured {
  try {
    const isolate = new Isolate(typeof config === "string" ? JSON.parse(config) : config);
    const { upstream } = isolate;
    if (upstream !== undefined && !isAddress(upstream) && serviceNamed(upstream, env) === undefined)
      throw new Misconfigured([["upstream", `there is no service binding ${upstream}`]]);
    return isolate;
  } catch (error) {
    const problem = error instanceof SyntaxError ? new Misconfigured([["", error.message]]) : error;
    if (!(problem instanceof Misconfigured)) throw error;
    say({ event: "misconfigured", mistakes: problem.mistakes });
    return problem;
  }
}
