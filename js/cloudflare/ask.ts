import type { Numbers } from "../numbers.ts";
import type { Answer, Mistake } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import type { Hold, Operation, RateLimiterObject } from "./object.ts";

/** How an object failed to answer. */
export type Trouble = "overloaded" | "timeout" | "failed";

/** An object that did not answer. */
export class Unanswered extends Error {
  readonly trouble: Trouble;

  constructor(trouble: Trouble, cause?: unknown) {
    super(`the object did not answer: ${trouble}`, { cause });
    this.trouble = trouble;
  }

  /** What a log says of it. */
  inWords(): { readonly trouble: Trouble; readonly cause?: string } {
    return { trouble: this.trouble, ...(this.cause === undefined ? {} : { cause: String(this.cause) }) };
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
