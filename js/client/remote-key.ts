import { wrongAmount, wrongInc } from "../errors/error.ts";
import type { Excepting, KeyOperation } from "../limiter/operation.ts";
import { readReservations } from "../limiter/reset-options.ts";
import { banLength } from "../policy/bans.ts";
import { exceptionFields, type JsonException, keyException } from "../policy/exception-fields.ts";
import type { Costs, Decision, Duration, Exception, ExceptionEnd, KeyException } from "../types.ts";
import { resultFields } from "../wasm/operations.ts";

/**
 * Sends an operation on one key, with its other fields, to the Worker.
 * @internal
 */
export type SendForKey = (
  operation: string,
  fields: Readonly<Record<string, unknown>>,
) => Promise<Readonly<Record<string, unknown>>>;

/** The operations whose results are one field, or an exception. */
type Performed = Exclude<KeyOperation, { readonly policies: unknown }> | Excepting;

/**
 * Performs an operation in the Worker, and returns its result.
 * @internal
 */
export async function performed(operation: Performed, send: SendForKey): Promise<unknown> {
  const { name, ...fields } = operation;
  // NaN and infinity would become null in JSON, as if they were left out.
  if (name === "inc" && !Number.isFinite(operation.cost)) throw wrongInc(operation.cost);
  if (name === "set" && !Number.isFinite(operation.count)) throw wrongAmount("count", operation.count);
  if (name === "exceptions") return keyException((await send(name, {})) as unknown as JsonException);
  const given = name === "except" ? exceptionFields(operation.exception, operation.end) : fields;
  return (await send(name, { ...given }))[resultFields[name]];
}

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
  inc(cost = 1, policy?: string): Promise<number> {
    return this.#perform({ name: "inc", cost, of: policy });
  }

  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  set(count: number, policy?: string): Promise<number> {
    return this.#perform({ name: "set", count, of: policy });
  }

  /** Returns the key's count. */
  get(policy?: string): Promise<number> {
    return this.#perform({ name: "get", of: policy });
  }

  /** Returns when the key's state ends, in milliseconds since the epoch; 0 if it has none. */
  expiresAt(policy?: string): Promise<number> {
    return this.#perform({ name: "expires_at", of: policy });
  }

  /** Denies every hit for so long, or changes the end of the ban that holds. Returns the end. */
  async ban(length: Duration, policy?: string): Promise<number> {
    return this.#perform({ name: "ban", for: banLength(length), of: policy });
  }

  /** Lifts a ban and forgets past ones. Returns true if one held. */
  unban(policy?: string): Promise<boolean> {
    return this.#perform({ name: "unban", of: policy });
  }

  /**
   * Gives the key other numbers, or allows or denies it, until a time; null lifts the exception that it has. Returns when it
   * ends, or would have ended; 0 if there was none.
   */
  except(exception: Exception | null, end?: ExceptionEnd): Promise<number> {
    return this.#perform({ name: "except", exception, end });
  }

  /** Returns the exception of the key that is in force; null if there is none. */
  exceptions(): Promise<KeyException | null> {
    return this.#perform({ name: "exceptions" });
  }

  /**
   * Removes the key's states, and returns true if there were any. Reservations stay open, unless `reservations` is true.
   */
  async reset(options: { readonly reservations?: boolean | undefined } = {}): Promise<boolean> {
    return this.#perform({ name: "reset", reservations: readReservations(options) });
  }

  async #perform<Result>(operation: Performed): Promise<Result> {
    return (await performed(operation, this.#send)) as Result;
  }
}
