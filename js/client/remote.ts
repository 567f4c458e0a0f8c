import { checkFunctions, checkNames } from "../checks.ts";
import { keyAccepts, refused, TollgateError, wrongAmount } from "../error.ts";
import type { Decision } from "../types.ts";
import { Batches } from "./batches.ts";

/** Where the Worker is, and what to do when it cannot be asked. */
export interface RemoteOptions {
  /** The Worker's address with its prefix: `https://limits.example.com/_tollgate`. */
  readonly url: string | URL;
  /** The token of the Worker's HTTP API. */
  readonly token: string;
  /** One of the Worker's policies by its name, or several that are one decision. */
  readonly policy: string | readonly string[];
  /** How long to wait for an answer, in milliseconds; two seconds by default. */
  readonly timeout?: number | undefined;
  /** What `hit` and `peek` answer when there is no answer: by default nothing, they throw. */
  readonly onError?: "allow" | "deny" | "throw" | undefined;
  /** The `fetch` to use, for instance that of a service binding. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined;
}

/**
 * A limiter whose keys are in a Tollgate Worker: one budget for a whole fleet. The same methods as `RateLimiter`,
 * asynchronous. What is asked in one tick goes in one request.
 *
 * @example
 * ```ts
 * import { RemoteLimiter } from "tollgate/client";
 *
 * const token = process.env.TOLLGATE_TOKEN ?? "";
 * const limiter = new RemoteLimiter({ url: "https://limits.example.com/_tollgate", token, policy: "api" });
 * const decision = await limiter.hit("user:42");
 * ```
 */
export class RemoteLimiter {
  #batches: Batches;
  #policy: string | readonly string[];
  #onError: "allow" | "deny" | "throw";

  constructor(options: RemoteOptions) {
    checkNames(options, optionNames);
    checkFunctions(options, ["fetch"]);
    const { url, token, policy, timeout = 2_000, onError = "throw" } = options;
    // What was found is not told: it may be a secret, if not the right one.
    if (typeof token !== "string" || !/^[!-~]+$/.test(token))
      throw new TollgateError("invalid_option", "token: give the TOLLGATE_TOKEN of the Worker");
    checkPolicy(policy);
    if (!["allow", "deny", "throw"].includes(onError))
      throw refused("invalid_option", "onError", onError, '"allow", "deny" or "throw"');
    if (typeof timeout !== "number" || !(timeout > 0 && timeout < 2 ** 31))
      throw refused("invalid_option", "timeout", timeout, "a number of milliseconds up to 2147483647");
    const request = options.fetch ?? ((request: Request) => fetch(request));
    this.#batches = new Batches(address(url), token, timeout, request);
    this.#policy = policy;
    this.#onError = onError;
  }

  /** Asks whether the key may act now, and takes `cost` if so. */
  hit(key: string, cost = 1): Promise<Decision> {
    return this.#decision("hit", key, cost);
  }

  /** What a hit would answer. Changes nothing. */
  peek(key: string, cost = 1): Promise<Decision> {
    return this.#decision("peek", key, cost);
  }

  /** Adds without asking, and answers the count. With several policies, `policy` names the one that counts it. */
  inc(key: string, cost = 1, policy?: string): Promise<number> {
    return this.#ask<{ count: number }>("inc", { key, cost, of: policy }).then(({ count }) => count);
  }

  /** Makes the key as if `count` had just been used, or leaves it `count` tokens. Answers the count. */
  set(key: string, count: number, policy?: string): Promise<number> {
    return this.#ask<{ count: number }>("set", { key, count, of: policy }).then(({ count }) => count);
  }

  /** The key's count. */
  get(key: string, policy?: string): Promise<number> {
    return this.#ask<{ count: number }>("get", { key, of: policy }).then(({ count }) => count);
  }

  /** When the key's state ends, in milliseconds since the epoch; 0 when it has none. */
  expiresAt(key: string, policy?: string): Promise<number> {
    return this.#ask<{ expiresAt: number }>("expires_at", { key, of: policy }).then(
      ({ expiresAt }) => expiresAt,
    );
  }

  /** Forgets the key. Says whether there was anything to forget. */
  reset(key: string): Promise<boolean> {
    return this.#ask<{ reset: boolean }>("reset", { key }).then(({ reset }) => reset);
  }

  async #decision(operation: string, key: string, cost: number): Promise<Decision> {
    try {
      const decision = await this.#ask<Wire>(operation, { key, cost });
      return { ...decision, retryAfter: decision.retryAfter ?? Number.POSITIVE_INFINITY };
    } catch (error) {
      const unanswered = error instanceof TollgateError && error.code === "unanswered";
      if (this.#onError === "throw" || !unanswered) throw error;
      return without(this.#onError === "allow");
    }
  }

  async #ask<Answer>(
    operation: string,
    { key, ...rest }: { key: string; [name: string]: unknown },
  ): Promise<Answer> {
    // Sent along, a key that is far too long would have the whole batch refused. The Worker counts bytes.
    if (typeof key !== "string" || key.length > 1024) throw refused("invalid_key", "key", key, keyAccepts);
    for (const field of ["cost", "count"] as const) {
      // In JSON, what is no number may pass for one that was left out.
      if (field in rest && !Number.isFinite(rest[field])) throw wrongAmount(field, rest[field]);
    }
    return (await this.#batches.ask(operation, { policy: this.#policy, key, ...rest })) as Answer;
  }
}

/** A decision in JSON, where never is null. */
type Wire = Omit<Decision, "retryAfter"> & { readonly retryAfter: number | null };

/** The decision when there is none. */
const without = (allowed: boolean): Decision => ({
  allowed,
  count: 0,
  limit: 0,
  remaining: 0,
  retryAfter: 0,
  resetAfter: 0,
  policy: "",
  violated: [],
  reason: "error",
});

const optionNames = ["url", "token", "policy", "timeout", "onError", "fetch"];

function address(url: string | URL): string {
  const { href, protocol } = URL.canParse(String(url)) ? new URL(url) : { href: "", protocol: "" };
  if (protocol === "https:" || protocol === "http:") return href.replace(/\/+$/, "");
  throw refused("invalid_option", "url", url, 'an address such as "https://limits.example.com/_tollgate"');
}

function checkPolicy(policy: unknown): void {
  const names: unknown[] = Array.isArray(policy) ? policy : [policy];
  if (names.length > 0 && names.every((name) => typeof name === "string" && name !== "")) return;
  throw refused(
    "invalid_option",
    "policy",
    policy,
    "the name of one of the Worker's policies, or a list of names",
  );
}
