import { ipKey, type Policies } from "../index.ts";
import { ReadPolicies } from "../policy/policies.ts";
import type { Exception, ExceptionEnd, KeyException } from "../types.ts";
import { UsageError } from "./errors.ts";
import type { Given, Options } from "./options.ts";
import { readPolicies, wrongPolicy } from "./policies.ts";
import { workerKey } from "./worker-key.ts";

/** What counts for a key now under one policy: hits under their limit, or the denials that begin a ban. */
export interface PolicyReport {
  readonly policy: string;
  readonly count: number;
  readonly limit: number;
  /** When the state ends; 0 if there is none. */
  readonly expiresAt: number;
  /** Of a ban, when it ends; 0 if it does not hold. */
  readonly bannedUntil?: number;
}

/** Returns a limit of a decision; null for the one that stands for none. */
export const limitOrNone = (limit: number): number | null =>
  limit === Number.MAX_SAFE_INTEGER ? null : limit;

/** What became of a key's bans. */
export interface Unbanned {
  readonly wasBanned: boolean;
  /** The bans that still hold, where they are known. */
  readonly others: readonly PolicyReport[];
}

/** What counts for a key now. The numbers are those of the policy that binds most. */
export interface KeyReport extends Omit<PolicyReport, "policy" | "limit"> {
  /** Null where there is none: a ban has none, and an exception may allow everything. */
  readonly limit: number | null;
  readonly remaining: number | null;
  readonly allowed: boolean;
  /** Why a hit would be denied, if not by what is used. */
  readonly reason?: string;
  /** In milliseconds; null for never. */
  readonly retryAfter: number | null;
  /** How long until more than the remaining is left, in milliseconds. */
  readonly moreAfter?: number;
  /** Each policy by itself, where they are known. */
  readonly policies?: readonly PolicyReport[];
  readonly bannedUntil?: number;
  readonly reservations?: number;
  readonly leases?: number;
  /** Null if there is none. */
  readonly exception?: KeyException | null;
}

/** A denial as it was recorded, or several of them in short order. */
export interface Denial {
  /** When the last was, in milliseconds since the epoch. */
  readonly at: number;
  readonly times: number;
  readonly policy: string;
  readonly count: number;
  readonly limit: number;
  readonly cost: unknown;
  /** From `at` on; null for never. */
  readonly retryAfter: number | null;
  /** Why, if not by what is used: `banned`, for example. */
  readonly reason?: string;
  /** The rule of a gateway. */
  readonly rule?: string;
}

/** What a Worker says of a key under one policy. */
export interface PolicyDecision {
  readonly policy: string;
  /** What counts now; that of the decision includes the hit that it is about. */
  readonly count?: number;
  readonly decision?: {
    readonly allowed: boolean;
    readonly count: number;
    readonly limit: number;
    readonly retryAfter: number | null;
    readonly moreAfter: number;
    readonly reason?: string;
  };
  readonly error?: { readonly message: string };
}

/** Why a key is denied, and was. */
export interface KeyStory {
  /** What counts now; null if nothing does. */
  readonly now: KeyReport | readonly PolicyDecision[] | null;
  /** The last first. */
  readonly denials: readonly Denial[];
}

/** A key in a Worker or in Redis. */
export interface KeyTarget {
  /** The key in words. */
  readonly words: string;
  /** The key in JSON. */
  readonly json: { readonly key: string } | { readonly parts: readonly string[] };
  /** What may be wrong if the key has no state; empty if nothing is known. */
  readonly hint: string;
  /** Where the key is, in words. */
  readonly place: string;
  report(): Promise<KeyReport>;
  story(): Promise<KeyStory>;
  /** Returns whether there was a state. */
  reset(reservations: boolean): Promise<boolean>;
  /** Returns when the ban ends. */
  ban(length: string | number): Promise<number>;
  unban(): Promise<Unbanned>;
  /** Returns when the exception ends; of null when the one before would have ended, 0 if there was none. */
  except(exception: Exception | null, end?: ExceptionEnd, note?: string): Promise<number>;
  /** Returns the note of the exception that ends at a time; `undefined` if there is none. */
  note(until: number): Promise<string | undefined>;
  /** Returns the exception that is in force; null if there is none. */
  exception(): Promise<KeyException | null>;
  close(): void;
}

/** Options that name the place. */
export const placeOptions: Options = {
  redis: {
    value: "<url>",
    help: "the address of a Redis: redis://127.0.0.1:6379/0, or rediss:// with TLS;\nby default TOLLGATE_REDIS",
  },
  prefix: { value: "<prefix>", help: 'the prefix of the keys in Redis; "tollgate:" by default' },
  name: { value: "<name>", help: 'the name of the limiter in Redis; "default" by default' },
  url: {
    value: "<url>",
    help: "a Worker's address, with its prefix if that is not /_tollgate;\nby default TOLLGATE_URL",
  },
  timeout: { value: "<ms>", help: "how long to wait for a response, in milliseconds; 2000 by default" },
  json: { help: "print the result as JSON" },
};

/** Options that name a key. */
export const keyOptions: Options = {
  ...placeOptions,
  policies: {
    value: "<json>",
    help: "the policies of a limiter in Redis, or a file of them; by default those of the\nkey's last operation, or of another key's",
  },
  part: {
    value: "<part>",
    multiple: true,
    help: "in a Worker: a part of a rule's key, with its value: ip=192.0.2.7, path=/search,\nheader:X-Api-Key=k, cookie:id=c, constant:login; several in the rule's order",
  },
  ip: {
    value: "<address>",
    help: "instead of a key: the client's address, as a guard counts it (IPv6 by its /64)",
  },
  policy: { value: "<name>", help: "the policy's name: required for a Worker" },
};

export const keyUsage =
  "(<key> | --ip <address> | --part <part>…) (--redis <url> | --url <url> --policy <name>)";

export const keyNotes = `
<key> is the key that the limiter was called with. For a visitor whom a rule of a gateway limits, use --part instead: once
for each part of the rule's key, or once with the whole key, as a log with logKeys = "plain" prints it:
--part /ip=9:192.0.2.7.

The token of a Worker's HTTP API is read from TOLLGATE_TOKEN. A password of Redis is better in TOLLGATE_REDIS than on the
command line.`;

/** Where keys are. */
export type Place =
  | { readonly redis: string; readonly prefix?: string; readonly name?: string; readonly timeout: number }
  | { readonly url: string; readonly token: string; readonly timeout: number };

/** Returns the place that the options name, or the environment. */
export function readPlace(given: Given): Place {
  const timeout = given.integer("timeout", 2_000, 1, 2 ** 31 - 1);
  const [redis, url] = [given.one("redis"), given.one("url")];
  if (redis !== undefined && url !== undefined) throw new UsageError("use --redis or --url, not both");
  const ofEnvironment = redis === undefined && url === undefined;
  const address = ofEnvironment ? process.env["TOLLGATE_REDIS"] : redis;
  const worker = ofEnvironment ? process.env["TOLLGATE_URL"] : url;
  if (address !== undefined && worker !== undefined)
    throw new UsageError("TOLLGATE_REDIS and TOLLGATE_URL are both set; use --redis or --url");
  if (address !== undefined) {
    const [prefix, name] = [given.one("prefix"), given.one("name")];
    return {
      redis: address,
      ...(prefix === undefined ? {} : { prefix }),
      ...(name === undefined ? {} : { name }),
      timeout,
    };
  }
  if (worker === undefined)
    throw new UsageError("--redis or TOLLGATE_REDIS is required, or --url or TOLLGATE_URL");
  for (const option of ["prefix", "name", "policies"])
    if (given.has(option)) throw new UsageError(`--${option} is for Redis`);
  const token = process.env["TOLLGATE_TOKEN"];
  if (!token) throw new UsageError("TOLLGATE_TOKEN is required in the environment");
  return { url: workerUrl(worker), token, timeout };
}

/** Where the HTTP API is, unless the configuration says otherwise. */
const defaultPath = "/_tollgate";

/** Checks the address of a Worker, and adds the usual prefix to one without a path. Errors show no password. */
function workerUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSecret = text.includes("@");
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UsageError(
      `--url${isSecret ? "" : `: ${JSON.stringify(text)}`} is not an address such as https://limits.example.com${defaultPath}`,
    );
  if (url.username !== "" || url.password !== "")
    throw new UsageError("--url: leave the user and the password out; the token is read from TOLLGATE_TOKEN");
  if (url.search !== "" || url.hash !== "")
    throw new UsageError(`--url: only the prefix may follow the host: ${url.origin}${defaultPath}`);
  // A request without the prefix would take the token to the origin.
  return url.pathname === "/" ? url.origin + defaultPath : text;
}

/** What a command line may have beside a key. */
interface TargetOptions {
  /** Whether a Worker needs no policy. */
  readonly anyPolicy: boolean;
  /** Whether other operands follow the key. */
  readonly hasAssignments: boolean;
}

/** Returns the key that the operands and options name. */
export async function readTarget(
  given: Given,
  { anyPolicy, hasAssignments }: TargetOptions,
): Promise<KeyTarget> {
  const parts = partsOf(given);
  const address = given.one("ip");
  const isNamed = parts.length > 0 || address !== undefined;
  const operands = !hasAssignments ? given.operands : given.operands.slice(0, isNamed ? 0 : 1);
  const [named, ...more] = operands;
  if (named !== undefined && isNamed) throw new UsageError("name a key, or use --part or --ip, not both");
  if (!isNamed && (named === undefined || more.length > 0))
    throw new UsageError("name one key, or use --ip for that of an address, or --part for that of a rule");
  const place = readPlace(given);
  const key = named ?? (address === undefined ? undefined : addressKey(address));
  if ("url" in place) {
    const policy = anyPolicy ? given.one("policy") : given.required("policy");
    return workerKey(named === undefined ? { parts } : { key: named }, { ...place, policy });
  }
  if (key === undefined) throw new UsageError("--part is for a Worker");
  const text = given.one("policies");
  const policies = text === undefined ? undefined : checkedPolicies(text);
  const { redisKey } = await import("./redis/index.ts");
  return redisKey(key, { ...place, policies, policy: given.one("policy") });
}

/** Reads and validates the value of `--policies`. */
function checkedPolicies(text: string): Policies | undefined {
  const [named] = readPolicies(text, undefined, "--policies");
  try {
    if (named !== undefined) ReadPolicies.of(named.policies);
  } catch (error) {
    throw wrongPolicy(named?.from ?? "--policies", error);
  }
  return named?.policies;
}

/** Returns the parts of a rule's key. That of an address alone is one. */
function partsOf(given: Given): readonly string[] {
  const [parts, address] = [given.all("part"), given.one("ip")];
  if (address === undefined) return parts;
  if (parts.length > 0) throw new UsageError("use --part or --ip, not both");
  return [`ip=${address}`];
}

/** Returns the key that a guard makes of an address. */
function addressKey(address: string): string {
  try {
    return ipKey(address);
  } catch {
    throw new UsageError(`--ip: ${JSON.stringify(address)} is not an IP address`);
  }
}
