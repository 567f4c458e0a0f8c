import { type ErrorCode, TollgateError } from "../error.ts";
import { senseless } from "./decision.ts";

/** How many items the Worker takes at once. */
const most = 100;

interface Waiting {
  readonly item: unknown;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Failed {
  readonly code: ErrorCode;
  readonly message: string;
}

/** What the Worker says of a request that it refuses as a whole. */
interface Problem {
  readonly code?: ErrorCode;
  readonly title?: string;
  readonly detail?: string;
}

/** What is asked in one tick, in one request for each operation. */
export class Batches {
  #waiting = new Map<string, Waiting[]>();
  #url: string;
  #token: string;
  #timeout: number;
  #fetch: (request: Request) => Promise<Response>;

  constructor(url: string, token: string, timeout: number, fetch: (request: Request) => Promise<Response>) {
    this.#url = url;
    this.#token = token;
    this.#timeout = timeout;
    this.#fetch = fetch;
  }

  ask(operation: string, item: unknown): Promise<unknown> {
    if (this.#waiting.size === 0) queueMicrotask(() => this.#send());
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(operation) ?? [];
      waiting.push({ item, resolve, reject });
      this.#waiting.set(operation, waiting);
    });
  }

  #send(): void {
    const all = this.#waiting;
    this.#waiting = new Map();
    for (const [operation, waiting] of all) {
      for (let at = 0; at < waiting.length; at += most) this.#settle(operation, waiting.slice(at, at + most));
    }
  }

  async #settle(operation: string, waiting: readonly Waiting[]): Promise<void> {
    try {
      const answers = await this.#answers(
        operation,
        waiting.map(({ item }) => item),
      );
      for (const [at, { resolve, reject }] of waiting.entries()) {
        const answer = answers[at] as { readonly error?: Failed } | null;
        if (typeof answer !== "object" || answer === null) reject(senseless("answer"));
        else if (answer.error === undefined) resolve(answer);
        else reject(new TollgateError(answer.error?.code ?? "unanswered", String(answer.error?.message)));
      }
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }

  async #answers(operation: string, items: readonly unknown[]): Promise<readonly unknown[]> {
    const request = new Request(`${this.#url}/v1/${operation}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json" },
      body: JSON.stringify(items),
      signal: AbortSignal.timeout(this.#timeout),
    });
    const fail = (how: string) => (cause: unknown) => {
      throw new TollgateError("unanswered", `${this.#url} ${how}; see docs/several-processes.md`, { cause });
    };
    const response = await this.#fetch(request).catch((cause) => fail(`did not answer: ${cause}`)(cause));
    const { ok, status } = response;
    const body: unknown = await response
      .json()
      .catch(fail(`answered ${status} and no JSON: is that the Worker's address, with its prefix?`));
    if (ok && Array.isArray(body) && body.length === items.length) return body;
    throw failure(this.#url, status, (body ?? {}) as Problem);
  }
}

/** A refusal of the whole request: the caller's mistake, or the Worker's trouble. */
function failure(url: string, status: number, { code, title, detail }: Problem): TollgateError {
  const told = [title ?? "nothing that can be understood", ...(detail ? [detail] : [])];
  const message = `${url} answered ${status}: ${told.join(". ")}`;
  if (status === 401 || status === 403)
    return new TollgateError("unauthorized", `${message}; see docs/gateway.md`);
  return new TollgateError(status >= 500 || code === undefined ? "unanswered" : code, message);
}
