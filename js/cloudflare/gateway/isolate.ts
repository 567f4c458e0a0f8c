import type { Gateway } from "../../../build/worker/tollgate.js";
import { type LeaseCore, Leases } from "../../lease/leases.ts";
import { type Numbers, namesIn } from "../../wasm/decision-numbers.ts";
import type { TollgateEnv } from "../env.ts";
import { log } from "../log.ts";
import type { Reach } from "../object/ask.ts";
import { call, Rebuilt } from "../wasm.ts";
import type { Collector } from "../watch/collector.ts";
import type { Cors } from "./cors.ts";
import { DeniedLately } from "./denied-lately.ts";
import { Digests } from "./digests.ts";
import { isAddress, serviceNamed } from "./forward.ts";

/** The forwarding of requests while the configuration has errors. */
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

/** A check of one limit by its object. */
export interface LimitCheck {
  readonly rule: number;
  readonly object: string;
  readonly set: number;
  readonly cost: number;
  readonly shadow: boolean;
  readonly allowOnError: boolean;
  /** The headers in the rule's key. */
  readonly headers: readonly string[];
  /** Whether the isolate may spend a lease on it, and the object credit. */
  readonly leases: boolean;
  readonly credit: boolean;
  /** The set that limits keys of which nothing is stored; undefined if there is no such limit. */
  readonly newKeys: number | undefined;
  /** How long a key is known at least, in milliseconds. */
  readonly keptFor: number;
}

/** A request that a rule rejects, or that is denied by its address. */
export interface Rejection {
  readonly rejectedBy: number;
  readonly reason: "missing" | "ambiguous" | "address";
}

/** An item of the API: one operation on one object. */
export interface Item {
  readonly object: string;
  readonly policies: string;
  readonly names: readonly string[];
  readonly amount: number;
  /** The name of one of several policies. */
  readonly policy: string | undefined;
  /** The operation in JSON, if it has more than an amount. */
  readonly question: string | undefined;
  /** Whether denied hits are counted, so that each must reach the object. */
  readonly countsDenied: boolean;
}

/** The items of a request, each valid or an error, and whether they came as a batch. */
interface ReadItems {
  readonly items: readonly (Item | { readonly code: string; readonly message: string })[];
  readonly batch: boolean;
}

/** A limit of a rule, without what a request adds. */
type Limit = Omit<LimitCheck, "object" | "cost">;

/** A set of policies. */
interface PolicySet {
  /** As JSON. */
  readonly policies: string;
  readonly names: readonly string[];
  readonly countsDenied: boolean;
}

/** The settings of a configuration. */
interface Settings {
  readonly upstream: string | undefined;
  readonly prefix: string;
  readonly timeout: number;
  readonly locationHint: Reach["locationHint"];
  readonly jurisdiction: Reach["jurisdiction"];
  readonly plainKeys: boolean;
  readonly origins: readonly string[];
  readonly readers: readonly string[];
  readonly credentials: boolean;
  readonly remembersDenials: boolean;
  readonly leaseTtl: number;
  readonly leases: boolean;
  readonly credit: boolean;
  readonly forwardsRewrites: boolean;
  readonly watches: boolean;
}

/** The most keys of which an isolate remembers denials and leases. */
const knownKeys = 10_000;

/** The response to a decision: the names of the violated policies, the headers, and the body of a denial. */
export interface ClientResponse {
  readonly violated: readonly string[];
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly problem: string;
}

/** The state of an isolate under one configuration, which is read once. */
export class Isolate implements Reach {
  readonly upstream: string | undefined;
  readonly prefix: string;
  readonly timeout: number;
  readonly locationHint: Reach["locationHint"];
  readonly jurisdiction: Reach["jurisdiction"];
  /** The origins whose pages may call the HTTP API. */
  readonly origins: readonly string[];
  /** The origins whose pages may read the gateway's own responses. */
  readonly cors: Cors;
  /** Whether hits that come by the API or by RPC may be leased, and have credit. */
  readonly hasLeases: boolean;
  readonly hasCredit: boolean;
  /** Whether the origin receives the headers by which some origins replace the URL. */
  readonly forwardsRewrites: boolean;
  /** True if decisions are counted for the live page. */
  readonly watches: boolean;
  /** The counter of decisions, once it is loaded. */
  collector: Collector | undefined;
  /** How keys are logged. */
  readonly plainKeys: boolean;
  /** The configuration. */
  readonly json: string;
  #gateway: Rebuilt<Gateway>;
  // Made when they are needed, so that the first request does not wait for what it does not use.
  #sets: readonly PolicySet[] | undefined;
  #limits: readonly Limit[] | undefined;
  #leases: Leases | undefined;
  #newLeases: () => Leases;
  #ownSecret: string | undefined;
  #digests = new Digests();
  /** The keys of rules with several that denied lately. */
  readonly deniedLately = new DeniedLately();

  /** Reads a configuration, a text of JSON. */
  constructor(json: string) {
    try {
      this.#gateway = new Rebuilt((rust) => new rust.Gateway(json));
    } catch (thrown) {
      throw Array.isArray(thrown) ? new Misconfigured(thrown, openGate(json)) : thrown;
    }
    const settings = this.#gateway.call((gateway) => gateway.settings()) as Settings;
    const { readers, credentials, leaseTtl, remembersDenials } = settings;
    this.upstream = settings.upstream;
    this.prefix = settings.prefix;
    this.timeout = settings.timeout;
    this.locationHint = settings.locationHint;
    this.jurisdiction = settings.jurisdiction;
    this.plainKeys = settings.plainKeys;
    this.origins = settings.origins;
    this.cors = { origins: readers, credentials };
    this.hasLeases = settings.leases;
    this.hasCredit = settings.credit;
    this.forwardsRewrites = settings.forwardsRewrites;
    this.watches = settings.watches;
    this.json = json;
    this.#newLeases = () => new Leases(coreOf(leaseTtl, remembersDenials), () => Date.now());
  }

  /** The sets of policies of the rules, and last that of wrong tokens. */
  get sets(): readonly PolicySet[] {
    this.#sets ??= this.#gateway.call((gateway) => gateway.sets()) as PolicySet[];
    return this.#sets;
  }

  /** Returns the set of policies at a position, which a plan has. */
  setAt(position: number): PolicySet {
    return this.sets[position] as PolicySet;
  }

  /** The leases and remembered denials. */
  get leases(): Leases {
    this.#leases ??= this.#newLeases();
    return this.#leases;
  }

  /**
   * Returns the plan of a request: `undefined` if no limit applies, the rule that rejects it, or the checks to make. The
   * checks of one rule follow each other, and are one decision.
   */
  plan(request: Request, path: string): Rejection | readonly LimitCheck[] | undefined {
    const { method, headers } = request;
    const hasBody = method === "OPTIONS" && request.body !== null;
    const plan = this.#gateway.call((gateway) => gateway.plan(method, path, hasBody, headers));
    if (plan === undefined) return undefined;
    if (!plan.includes(" ")) return rejection(plan);
    return plan.includes("\n") ? plan.split("\n").map((line) => this.#check(line)) : [this.#check(plan)];
  }

  #check(line: string): LimitCheck {
    this.#limits ??= this.#gateway.call((gateway) => gateway.limits()) as Limit[];
    const first = line.indexOf(" ");
    const second = line.indexOf(" ", first + 1);
    const [limit, cost] = [Number(line.slice(0, first)), Number(line.slice(first, second))];
    return { ...(this.#limits[limit] as Limit), object: line.slice(second + 1), cost };
  }

  /** Returns the check of a wrong token by the request's address. */
  tokenCheck({ headers }: Request): LimitCheck {
    const object = this.#gateway.call((gateway) => gateway.tokenObject(headers));
    const set = this.sets.length - 1;
    const facts = { rule: -1, cost: 1, shadow: false, allowOnError: true, headers: [] };
    return { ...facts, object, set, leases: false, credit: false, newKeys: undefined, keptFor: 0 };
  }

  /** Returns the name of the object that counts the new keys of a request's address. */
  newKeysObject({ headers }: Request): string {
    return this.#gateway.call((gateway) => gateway.newKeysObject(headers));
  }

  /** Returns the key of a check in `leases`: the object's name under its policies. */
  keyOf({ object, set }: LimitCheck): string {
    return `${set} ${object}`;
  }

  /** Returns a remembered denial; `undefined` if there is none. */
  remembered(check: LimitCheck): Numbers | undefined {
    // Without leases nothing is remembered yet.
    return this.#leases?.denied(this.keyOf(check), check.cost);
  }

  /** Returns the response of a remembered denial; `undefined` if there is none. */
  recall(check: LimitCheck): ClientResponse | undefined {
    const numbers = this.remembered(check);
    return numbers === undefined ? undefined : this.clientResponse(check.set, numbers);
  }

  /** Remembers a denial of a check that was sent at `sentAt`, unless its policies count denied hits. */
  remember(check: LimitCheck, numbers: Numbers, sentAt: number): void {
    if (!this.setAt(check.set).countsDenied)
      this.leases.remember(this.keyOf(check), check.cost, numbers, sentAt);
  }

  /** Returns the response to a decision. */
  clientResponse(set: number, numbers: Numbers): ClientResponse {
    return this.#parse(
      set,
      this.#gateway.call((gateway) => gateway.clientResponse(set, numbers)),
    );
  }

  #parse(set: number, words: string): ClientResponse {
    const lines = words.split("\n");
    const headers: [string, string][] = [];
    for (let at = 1; at < lines.length - 1; at += 2)
      headers.push([lines[at] as string, lines[at + 1] as string]);
    return {
      violated: namesIn(Number(lines[0]), this.setAt(set).names),
      headers,
      problem: lines.at(-1) as string,
    };
  }

  /** Returns the items of a request to the API, each valid or an error. Throws if the request as a whole is invalid. */
  items(operation: string, body: unknown): ReadItems {
    return this.#gateway.call((gateway) => gateway.items(operation, body)) as ReadItems;
  }

  /** Returns the item of a call by RPC. */
  item(operation: string, names: string[], key: string, amount: number, policy?: string): Item {
    return this.#gateway.call((gateway) => gateway.item(operation, names, key, amount, policy)) as Item;
  }

  /** Returns a key for logs: hashed, unless the configuration has `logKeys = "plain"`. */
  logged(key: string, env: TollgateEnv): string {
    if (this.plainKeys) return key;
    const secret = env.TOLLGATE_LOG_SECRET ?? env.TOLLGATE_TOKEN ?? this.#secret();
    return this.#digests.of(key, secret, () => this.#gateway.call((gateway) => gateway.digest(secret, key)));
  }

  #secret(): string {
    this.#ownSecret ??= crypto.randomUUID();
    return this.#ownSecret;
  }
}

/** Returns the rejection in a plan: the position of a rule, with "?" if the key is ambiguous, or "!" for the address. */
function rejection(plan: string): Rejection {
  if (plan === "!") return { rejectedBy: -1, reason: "address" };
  return { rejectedBy: Number.parseInt(plan, 10), reason: plan.endsWith("?") ? "ambiguous" : "missing" };
}

/** Returns the forwarding of an invalid configuration with `onMisconfigured = "pass"`; `undefined` for others. */
function openGate(json: string): OpenGate | undefined {
  const [upstream, prefix] = call(({ Gateway }) => Gateway.openGate(json)) ?? [];
  return upstream === undefined ? undefined : { upstream, prefix };
}

/** Returns the leases in wasm. After a trap they are lost, and charged at their ends. */
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

/** The isolates by configuration. A Worker has one; tests have a few. */
const known = new Map<unknown, Isolate | Misconfigured>();

/** The configuration of a Worker without one: a constant, so that it is read once. */
const unconfigured = {};

/** Returns the isolate of a configuration, which is read at its first request. Throws its errors, and logs them once. */
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

/** The secrets, which may be missing, but not empty: everybody knows an empty one. */
const secrets = ["TOLLGATE_TOKEN", "TOLLGATE_LOG_SECRET"] as const;

function read(config: unknown, env: TollgateEnv): Isolate | Misconfigured {
  try {
    const json = typeof config === "string" ? config : JSON.stringify(config);
    const isolate = new Isolate(json);
    const { upstream } = isolate;
    const empty = secrets.filter((name) => env[name] === "");
    if (empty.length > 0)
      throw new Misconfigured(
        empty.map((name) => [name, "is empty; set it, or delete the secret"]),
        openGate(json),
      );
    if (upstream !== undefined && !isAddress(upstream) && serviceNamed(upstream, env) === undefined)
      throw new Misconfigured([["upstream", `there is no service binding ${upstream}`]]);
    return isolate;
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error;
    log({ event: "misconfigured", errors: error.errors });
    return error;
  }
}
