import type { Numbers } from "../../wasm/decision-numbers.ts";
import type { TollgateEnv } from "../env.ts";
import type { Answer, ErrorInfo } from "./decision.ts";
import type { RateLimiterObject } from "./object.ts";

/** The ways in which an object fails to respond. */
export type Failure = "overloaded" | "timeout" | "failed";

/** The error of an object that did not respond. */
export class Unanswered extends Error {
  readonly failure: Failure;

  constructor(failure: Failure, cause?: unknown) {
    super(`the object did not respond: ${failure}`, { cause });
    this.failure = failure;
  }

  /** Returns the fields of a log line about it. */
  logFields(): { readonly failure: Failure; readonly cause?: string } {
    return { failure: this.failure, ...(this.cause === undefined ? {} : { cause: String(this.cause) }) };
  }
}

/** Where the platform keeps objects, and how long they may take. */
export interface Reach {
  /** In milliseconds. */
  readonly timeout: number;
  /** The region in which an object is created. */
  readonly locationHint: DurableObjectLocationHint | undefined;
  /** The jurisdiction that an object never leaves. The same name is another object in each. */
  readonly jurisdiction: DurableObjectJurisdiction | undefined;
}

function stubOf({ LIMITERS }: TollgateEnv, { locationHint, jurisdiction }: Reach, object: string) {
  const namespace = jurisdiction === undefined ? LIMITERS : LIMITERS.jurisdiction(jurisdiction);
  return locationHint === undefined
    ? namespace.getByName(object)
    : namespace.getByName(object, { locationHint });
}

/**
 * Sends an operation to an object, once. Rejects with `Unanswered`.
 *
 * The platform retries by itself, and knows which calls have run. A retry of ours would charge a hit twice whose reply was
 * lost.
 */
export function ask(
  env: TollgateEnv,
  reach: Reach,
  object: string,
  call: (stub: DurableObjectStub<RateLimiterObject>) => Promise<Numbers | ErrorInfo>,
): Promise<Numbers | ErrorInfo> {
  return send(env, reach, object, call);
}

/** Sends an operation in JSON to an object, in the same way. */
export async function askInJson(
  env: TollgateEnv,
  reach: Reach,
  object: string,
  question: string,
): Promise<Answer> {
  return JSON.parse(await send(env, reach, object, (stub) => stub.question(question)));
}

function send<Reply>(
  env: TollgateEnv,
  reach: Reach,
  object: string,
  call: (stub: DurableObjectStub<RateLimiterObject>) => Promise<Reply>,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Unanswered("timeout")), reach.timeout);
    const replied = (reply: Reply) => {
      clearTimeout(timer);
      resolve(reply);
    };
    const failed = (error: { readonly overloaded?: boolean } | undefined) => {
      clearTimeout(timer);
      reject(new Unanswered(error?.overloaded ? "overloaded" : "failed", error));
    };
    try {
      // Not awaited: each promise in between would cost every hit another turn.
      call(stubOf(env, reach, object)).then(replied, failed);
    } catch (error) {
      failed(error as { readonly overloaded?: boolean });
    }
  });
}
