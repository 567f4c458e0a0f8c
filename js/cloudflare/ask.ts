import type { Numbers } from "../numbers.ts";
import type { Answer, Mistake } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import type { Hold, Operation, RateLimiterObject } from "./object.ts";

/** The ways in which an object fails to respond. */
export type Failure = "overloaded" | "timeout" | "failed";

/** The error of an object that did not respond. */
export class Unanswered extends Error {
  readonly failure: Failure;

  constructor(failure: Failure, cause?: unknown) {
    super(`the object did not answer: ${failure}`, { cause });
    this.failure = failure;
  }

  /** Returns the fields of a log line about it. */
  logFields(): { readonly failure: Failure; readonly cause?: string } {
    return { failure: this.failure, ...(this.cause === undefined ? {} : { cause: String(this.cause) }) };
  }
}

interface PlatformError {
  readonly overloaded?: boolean;
  readonly retryable?: boolean;
}

/** Asks an object, a second time if the platform says that this makes sense. Rejects with `Unanswered`. */
export function ask(
  env: TollgateEnv,
  timeout: number,
  object: string,
  ...question: [
    operation: Operation | Hold,
    policies: string,
    amount: number,
    of?: string | undefined,
    credit?: boolean,
  ]
): Promise<Numbers | Mistake> {
  return asked(env, timeout, object, (stub) => stub.apply(...question) as Promise<Numbers | Mistake>);
}

/** Asks an object a question in JSON, in the same way. */
export async function askInJson(
  env: TollgateEnv,
  timeout: number,
  object: string,
  question: string,
): Promise<Answer> {
  return JSON.parse(await asked(env, timeout, object, (stub) => stub.question(question)));
}

function asked<Answered>(
  env: TollgateEnv,
  timeout: number,
  object: string,
  call: (stub: DurableObjectStub<RateLimiterObject>) => Promise<Answered>,
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Unanswered("timeout")), timeout);
    const answered = (answer: Answered) => {
      clearTimeout(timer);
      resolve(answer);
    };
    const failed = (error: PlatformError) => {
      clearTimeout(timer);
      reject(new Unanswered(error?.overloaded ? "overloaded" : "failed", error));
    };
    const attempt = (otherwise: (error: PlatformError) => void) => {
      try {
        // Not awaited: every promise in between is another turn, on every hit.
        call(env.LIMITERS.getByName(object)).then(answered, otherwise);
      } catch (error) {
        otherwise(error as PlatformError);
      }
    };
    attempt((error) => (mayRetry(error) ? attempt(failed) : failed(error)));
  });
}

/** More requests only make an overload worse. */
const mayRetry = (error: PlatformError) => error?.retryable === true && error.overloaded !== true;
