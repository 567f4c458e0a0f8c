import type { Gateway } from "../../build/worker/tollgate.js";
import { type LeaseCore, Leases } from "../leases.ts";
import { type Numbers, namesIn } from "../numbers.ts";
import type { Cors } from "./cors.ts";
import { Digests } from "./digests.ts";
import type { TollgateEnv } from "./env.ts";
import { isAddress, serviceNamed } from "./forward.ts";
import { log } from "./log.ts";
import { call, Rebuilt } from "./wasm.ts";

/** Where requests go while the configuration has errors. */
export interface OpenGate {
  readonly upstream: string;
  readonly prefix: string;
}

/** The errors of an invalid configuration: a path and a problem each. */
export class Misconfigured extends Error {
  readonly errors: readonly (readonly [path: string, problem: string])[];
  /** Set only if the configuration has `onMisconfigured = "pass"`. */
  readonly openGate: OpenGate | undefined;

  constructor(errors: readonly (readonly [string, string])[], openGate?: OpenGate) {
    super(errors.map(([path, problem]) => (path ? `${path}: ${problem}` : problem)).join("\n"));
    this.errors = errors;
    this.openGate = openGate;
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
  /** The headers in the rule's key. */
  readonly headers: readonly string[];
  /** Whether the isolate may hold a lease for it, and the object may spend credit. */
  readonly leases: boolean;
  readonly credit: boolean;
}

/** What is to be asked of an object for an item of the API. */
export interface Item {
  readonly object: string;
  readonly policies: string;
  readonly names: readonly string[];
  readonly amount: number;
  readonly of: string | undefined;
  /** The question in JSON, if it says more than that. */
  readonly question: string | undefined;
  /** Whether denied hits are counted, so that each must be asked for. */
  readonly countsDenied: boolean;
}

type LimitFacts = readonly [
  rule: number,
  set: number,
  cost: number,
  shadow: boolean,
  allowOnError: boolean,
  headers: readonly string[],
  leases: boolean,
  credit: boolean,
];

type Settings = [
  upstream: string | undefined,
  prefix: string,
  timeout: number,
  plainKeys: boolean,
  origins: string[],
  readers: string[],
  credentials: boolean,
  remembersDenials: boolean,
  leaseTtl: number,
  leases: boolean,
  credit: boolean,
];

/** How many keys an isolate knows something of. */
const knownKeys = 10_000;

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
  /** The origins whose pages may read the gateway's own answers. */
  readonly cors: Cors;
  /** The policies of the rules as JSON, their names, and whether denied hits are counted; then those of wrong tokens. */
  readonly sets: readonly (readonly [policies: string, names: readonly string[], countsDenied: boolean])[];
  /** What is known of keys: denials, and leases. */
  readonly leases: Leases;
  /** Whether hits that come by the API or by RPC may be leased, and have credit. */
  readonly hasLeases: boolean;
  readonly hasCredit: boolean;
  #gateway: Rebuilt<Gateway>;
  #limits: readonly LimitFacts[];
  #plainKeys: boolean;
  #ownSecret: string | undefined;
  #digests = new Digests();

  constructor(config: unknown) {
    try {
      this.#gateway = new Rebuilt((rust) => new rust.Gateway(config));
    } catch (thrown) {
      throw Array.isArray(thrown) ? new Misconfigured(thrown, openGate(config)) : thrown;
    }
    const settings = this.#gateway.call((gateway) => gateway.settings()) as Settings;
    const [upstream, prefix, timeout, plainKeys, origins, readers, credentials, ...rest] = settings;
    const [remembersDenials, leaseTtl, leases, credit] = rest;
    this.upstream = upstream;
    this.prefix = prefix;
    this.timeout = timeout;
    this.#plainKeys = plainKeys;
    this.origins = origins;
    this.cors = { origins: readers, credentials };
    this.hasLeases = leases;
    this.hasCredit = credit;
    this.leases = new Leases(coreOf(leaseTtl, remembersDenials), () => Date.now());
    this.sets = this.#gateway.call((gateway) => gateway.sets()) as [string, string[], boolean][];
    this.#limits = this.#gateway.call((gateway) => gateway.limits());
  }

  /**
   * What is to be done with a request: nothing, refuse it under a rule, or ask, one rule after the other. The questions of
   * one rule follow each other, and are one decision.
   */
  plan(request: Request, path: string): { readonly rejectedBy: number } | readonly Ask[] | undefined {
    const { method, headers } = request;
    const hasBody = method === "OPTIONS" && request.body !== null;
    const plan = this.#gateway.call((gateway) => gateway.plan(method, path, hasBody, headers));
    if (plan === undefined) return undefined;
    if (!plan.includes(" ")) return { rejectedBy: Number(plan) };
    return plan.includes("\n") ? plan.split("\n").map((line) => this.#ask(line)) : [this.#ask(plan)];
  }

  #ask(line: string): Ask {
    const limit = Number.parseInt(line, 10);
    const [rule, set, cost, shadow, allowOnError, headers, leases, credit] = this.#limits[
      limit
    ] as LimitFacts;
    const object = line.slice(line.indexOf(" ") + 1);
    return { rule, object, set, cost, shadow, allowOnError, headers, leases, credit };
  }

  /** What is to be asked about a wrong token of a request. */
  guess({ headers }: Request): Ask {
    const object = this.#gateway.call((gateway) => gateway.tokenObject(headers));
    const set = this.sets.length - 1;
    const facts = { rule: -1, cost: 1, shadow: false, allowOnError: true, headers: [] };
    return { ...facts, object, set, leases: false, credit: false };
  }

  /** The key of what is known of a question's key: under other policies it is another. */
  keyOf({ object, set }: Ask): string {
    return `${set} ${object}`;
  }

  /** What is told of a denial that is remembered. */
  recall(ask: Ask): Told | undefined {
    const numbers = this.leases.denied(this.keyOf(ask), ask.cost);
    return numbers === undefined ? undefined : this.told(ask.set, numbers);
  }

  /** Remembers a denial of what was asked at that time, if its policies allow it. */
  remember(ask: Ask, numbers: Numbers, asked: number): void {
    if (!this.sets[ask.set]?.[2]) this.leases.remember(this.keyOf(ask), ask.cost, numbers, asked);
  }

  /** What a client is told of a decision. */
  told(set: number, numbers: Numbers): Told {
    return this.#read(
      set,
      this.#gateway.call((gateway) => gateway.clientResponse(set, numbers)),
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
      items: (list as unknown[][]).map((parts) => (parts.length === 2 ? rejected(parts) : item(parts))),
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

/** Where requests go while a configuration has errors, if it says that they pass. */
function openGate(config: unknown): OpenGate | undefined {
  const [upstream, prefix] = call(({ Gateway }) => Gateway.openGate(config)) ?? [];
  return upstream === undefined ? undefined : { upstream, prefix };
}

const item = ([object, policies, names, amount, of, question, countsDenied]: unknown[]) =>
  ({ object, policies, names, amount, of, question, countsDenied }) as Item;

/** The arithmetic of leases. After a trap it starts anew: leases that are lost are charged by their ends. */
function coreOf(ttl: number, remembersDenials: boolean): LeaseCore {
  const core = new Rebuilt((rust) => new rust.Leases(knownKeys, ttl, remembersDenials));
  return {
    denied: (...given) => core.call((leases) => leases.denied(...given)),
    hit: (...given) => core.call((leases) => leases.hit(...given)),
    spend: (...given) => core.call((leases) => leases.spend(...given)),
    replied: (...given) => core.call((leases) => leases.replied(...given)),
    failed: (...given) => core.call((leases) => leases.failed(...given)),
    giveBack: (...given) => core.call((leases) => leases.giveBack(...given)),
  };
}

const rejected = ([code, message]: unknown[]) => ({ code, message }) as { code: string; message: string };

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
    const misconfigured =
      error instanceof SyntaxError
        ? new Misconfigured([["", `TOLLGATE is not JSON: ${error.message}`]])
        : error;
    if (!(misconfigured instanceof Misconfigured)) throw error;
    log({ event: "misconfigured", errors: misconfigured.errors });
    return misconfigured;
  }
}
