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

/** Asks an object, a second time if the platform says that this makes sense. Throws `Unanswered`. */
export async function ask(
  env: TollgateEnv,
  timeout: number,
  object: string,
  ...question: [operation: Operation, policies: string, amount: number, of?: string | undefined]
): Promise<Numbers | Mistake> {
  const answer = () => env.LIMITERS.getByName(object).apply(...question) as Promise<Numbers | Mistake>;
  try {
    return await within(
      timeout,
      answer().catch((error) => (mayRetry(error) ? answer() : Promise.reject(error))),
    );
  } catch (error) {
    if (error instanceof Unanswered) throw error;
    throw new Unanswered((error as PlatformError)?.overloaded ? "overloaded" : "failed", error);
  }
}

/** More requests only make an overload worse. */
const mayRetry = (error: PlatformError) => error?.retryable === true && error.overloaded !== true;

/** Waits for an answer no longer than this. */
function within<Answer>(timeout: number, answer: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Unanswered("timeout")), timeout);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
