import type { Mistake, Numbers } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import type { Operation } from "./object.ts";

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
  ...question: [operation: Operation, policies: string, amount: number, of?: string | undefined]
): Promise<Numbers | Mistake> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Unanswered("timeout")), timeout);
    const answered = (answer: Numbers | Mistake) => {
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
        env.LIMITERS.getByName(object)
          .apply(...question)
          .then(answered, otherwise);
      } catch (error) {
        otherwise(error as PlatformError);
      }
    };
    attempt((error) => (mayRetry(error) ? attempt(failed) : failed(error)));
  });
}

/** More requests only make an overload worse. */
const mayRetry = (error: PlatformError) => error?.retryable === true && error.overloaded !== true;
