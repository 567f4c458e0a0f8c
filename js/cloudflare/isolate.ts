import type { Gateway } from "../../build/worker/tollgate.js";
import { type Numbers, namesIn } from "./decision.ts";
import { Digests } from "./digests.ts";
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

type RuleFacts = readonly [set: number, cost: number, shadow: boolean, allowOnError: boolean];

/** What a client is told of a decision: headers, and the body of a denial; and the names of the policies that denied. */
export interface Told {
  readonly violated: readonly string[];
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly problem: string;
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
  #rules: readonly RuleFacts[];
  #plainKeys: boolean;
  #ownSecret: string | undefined;
  #digests = new Digests();

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
    this.#rules = this.#gateway.call((gateway) => gateway.rules());
  }

  /** What is to be done with a request: nothing, refuse it under a rule, or ask. */
  plan({ method, headers }: Request, path: string): { readonly refusedBy: number } | Ask | undefined {
    const plan = this.#gateway.call((gateway) => gateway.plan(method, path, headers));
    if (plan === undefined) return undefined;
    const rule = Number.parseInt(plan, 10);
    const space = plan.indexOf(" ");
    if (space < 0) return { refusedBy: rule };
    const [set, cost, shadow, allowOnError] = this.#rules[rule] as RuleFacts;
    return { rule, object: plan.slice(space + 1), set, cost, shadow, allowOnError };
  }

  /** What is told of a denial that is remembered. */
  recall({ object, set, cost }: Ask, now: number): Told | undefined {
    const words = this.#gateway.call((gateway) => gateway.recall(object, set, cost, now));
    return words === undefined ? undefined : this.#read(set, words);
  }

  /** Remembers a denial, if its policies allow it. */
  remember({ object, set, cost }: Ask, numbers: Numbers, now: number): void {
    this.#gateway.call((gateway) => gateway.remember(object, set, cost, numbers, now));
  }

  /** What a client is told of a decision. */
  told(set: number, numbers: Numbers): Told {
    return this.#read(
      set,
      this.#gateway.call((gateway) => gateway.told(set, numbers)),
    );
  }

  #read(set: number, words: string): Told {
    const lines = words.split("\n");
    const headers: [string, string][] = [];
    for (let at = 1; at < lines.length - 1; at += 2)
      headers.push([lines[at] as string, lines[at + 1] as string]);
    return {
      violated: namesIn(Number(lines[0]), this.sets[set]?.[1] ?? []),
      headers,
      problem: lines.at(-1) as string,
    };
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
    return this.#digests.of(key, secret, () => this.#gateway.call((gateway) => gateway.digest(secret, key)));
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

/** The configuration of a Worker that has none: always the same one, so that it is read once. */
const unconfigured = {};

/** The isolate's configuration, read at its first request. Throws what is wrong with it, and logs that once. */
export function isolateOf(env: TollgateEnv): Isolate {
  const { TOLLGATE: config = unconfigured } = env;
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
    const problem =
      error instanceof SyntaxError
        ? new Misconfigured([["", `TOLLGATE is not JSON: ${error.message}`]])
        : error;
    if (!(problem instanceof Misconfigured)) throw error;
    say({ event: "misconfigured", mistakes: problem.mistakes });
    return problem;
  }
}
