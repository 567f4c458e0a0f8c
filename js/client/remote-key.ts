import { copiedOptions } from "../checks.ts";
import { invalidField, wrongAmount, wrongInc } from "../errors/error.ts";
import { banLength } from "../policy/bans.ts";
import { exceptionFields, type JsonException, keyException } from "../policy/exception-fields.ts";
import type { Costs, Decision, Duration, Exception, ExceptionEnd, KeyException } from "../types.ts";

/**
 * Sends an operation on one key, with its other fields, to the Worker.
 * @internal
 */
export type SendForKey = (
  operation: string,
  fields: Readonly<Record<string, unknown>>,
) => Promise<Readonly<Record<string, unknown>>>;

/** The operations on one key in a Worker that an operator needs; `RemoteLimiter.ofRule` returns them. */
export class RemoteKey {
  readonly #send: SendForKey;
  readonly #peek: (cost: Costs) => Promise<Decision>;

  /** @internal */
  constructor(send: SendForKey, peek: (cost: Costs) => Promise<Decision>) {
    this.#send = send;
    this.#peek = peek;
  }

  /** Returns what a hit would return. Changes no state. */
  peek(cost: Costs = 1): Promise<Decision> {
    return this.#peek(cost);
  }

  /** Adds a cost to the count, whether it fits or not, and returns the count. A negative cost gives back. */
  async inc(cost = 1, policy?: string): Promise<number> {
    if (!Number.isFinite(cost)) throw wrongInc(cost);
    return (await this.#send("inc", { cost, of: policy }))["count"] as number;
  }

  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  async set(count: number, policy?: string): Promise<number> {
    // NaN and infinity would become null in JSON, as if the count were left out.
    if (!Number.isFinite(count)) throw wrongAmount("count", count);
    return (await this.#send("set", { count, of: policy }))["count"] as number;
  }

  /** Returns the key's count. */
  async get(policy?: string): Promise<number> {
    return (await this.#send("get", { of: policy }))["count"] as number;
  }

  /** Returns when the key's state ends, in milliseconds since the epoch; 0 if it has none. */
  async expiresAt(policy?: string): Promise<number> {
    return (await this.#send("expires_at", { of: policy }))["expiresAt"] as number;
  }

  /** Denies every hit for so long, or changes the end of the ban that holds. Returns the end. */
  async ban(length: Duration, policy?: string): Promise<number> {
    return (await this.#send("ban", { for: banLength(length), of: policy }))["until"] as number;
  }

  /** Lifts a ban and forgets past ones. Returns true if one held. */
  async unban(policy?: string): Promise<boolean> {
    return (await this.#send("unban", { of: policy }))["unbanned"] as boolean;
  }

  /**
   * Gives the key other numbers, or allows or denies it, until a time; null lifts the exception that it has. Returns when it
   * ends, or would have ended; 0 if there was none.
   */
  async except(exception: Exception | null, end?: ExceptionEnd): Promise<number> {
    return (await this.#send("except", { ...exceptionFields(exception, end) }))["until"] as number;
  }

  /** Returns the exception of the key that is in force; null if there is none. */
  async exceptions(): Promise<KeyException | null> {
    return keyException((await this.#send("exceptions", {})) as unknown as JsonException);
  }

  /**
   * Removes the key's states, and returns true if there were any. Reservations stay open, unless `reservations` is true.
   */
  async reset(options: { readonly reservations?: boolean | undefined } = {}): Promise<boolean> {
    const { reservations } = copiedOptions(options, ["reservations"]);
    if (reservations !== undefined && typeof reservations !== "boolean")
      throw invalidField("invalid_option", "reservations", reservations, "a boolean");
    return (await this.#send("reset", { reservations }))["reset"] as boolean;
  }
}
