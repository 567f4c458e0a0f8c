import { deadline } from "../deadline.ts";
import { type ErrorCode, TollgateError } from "../errors/error.ts";
import { Outage } from "../events/outage.ts";
import { invalidResponse } from "./decision.ts";

/** The most items that the Worker accepts in a request. */
const maxItems = 100;

interface PendingItem {
  readonly item: unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The error of one item in the Worker's response. */
interface ItemError {
  readonly code: ErrorCode;
  readonly message: string;
}

/** The Worker's response to a request that it rejects as a whole. */
interface Problem {
  readonly code?: ErrorCode;
  readonly title?: string;
  readonly detail?: string;
}

/** Sends the items of one tick together, in one request for each operation. */
export class Batches {
  /** The items that wait for the end of the tick, by operation. */
  #pending = new Map<string, PendingItem[]>();
  /** The outages of the Worker. */
  readonly outage: Outage;
  #url: string;
  #token: string;
  #timeout: number;
  #fetch: (request: Request) => Promise<Response>;

  constructor(url: string, token: string, timeout: number, fetch: (request: Request) => Promise<Response>) {
    this.outage = new Outage("the Worker");
    this.#url = url;
    this.#token = token;
    this.#timeout = timeout;
    this.#fetch = fetch;
  }

  /** Adds an item, and returns its result. */
  add(operation: string, item: unknown): Promise<unknown> {
    if (this.#pending.size === 0) queueMicrotask(() => this.#flush());
    return new Promise((resolve, reject) => {
      const pending = this.#pending.get(operation) ?? [];
      pending.push({ item, resolve, reject });
      this.#pending.set(operation, pending);
    });
  }

  #flush(): void {
    const all = this.#pending;
    this.#pending = new Map();
    for (const [operation, pending] of all) {
      for (let at = 0; at < pending.length; at += maxItems)
        this.#handle(operation, pending.slice(at, at + maxItems));
    }
  }

  /** Sends items, and settles their promises. */
  async #handle(operation: string, pending: readonly PendingItem[]): Promise<void> {
    try {
      const results = await this.#send(
        operation,
        pending.map(({ item }) => item),
      );
      for (const [at, { resolve, reject }] of pending.entries()) {
        const result = results[at] as { readonly error?: ItemError } | null;
        if (typeof result !== "object" || result === null) reject(invalidResponse("result"));
        else if (result.error === undefined) resolve(result);
        else reject(new TollgateError(result.error?.code ?? "unanswered", String(result.error?.message)));
      }
    } catch (error) {
      for (const { reject } of pending) reject(error);
    }
  }

  /** Sends items in one request, and returns their results in the same order. */
  async #send(operation: string, items: readonly unknown[]): Promise<readonly unknown[]> {
    const abort = new AbortController();
    const late = new DOMException(`no response within ${this.#timeout} ms`, "TimeoutError");
    const prevent = deadline(this.#timeout, () => abort.abort(late));
    try {
      const results = await this.#results(operation, items, abort.signal);
      this.outage.responded();
      return results;
    } finally {
      prevent();
    }
  }

  async #results(
    operation: string,
    items: readonly unknown[],
    signal: AbortSignal,
  ): Promise<readonly unknown[]> {
    const request = new Request(`${this.#url}/v1/${operation}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json" },
      body: JSON.stringify(items),
      signal,
    });
    const fail = (reason: string) => (cause: unknown) => {
      throw new TollgateError("unanswered", `${this.#url} ${reason}; see docs/several-processes.md`, {
        cause,
      });
    };
    const response = await this.#fetch(request).catch((error) =>
      fail(`did not respond: ${reasonOf(error)}`)(error),
    );
    const { ok, status } = response;
    const body: unknown = await response
      .json()
      .catch(fail(`responded with ${status} and no JSON: check the Worker's address and its prefix`));
    if (ok && Array.isArray(body) && body.length === items.length) return body;
    throw requestError(this.#url, status, (body ?? {}) as Problem);
  }
}

/** Returns why a request failed. In Node, the error of `fetch` says only that it did; its cause says why. */
const reasonOf = (error: unknown): string => {
  const { cause } = (error ?? {}) as {
    readonly cause?: { readonly message?: string; readonly code?: string };
  };
  return cause?.message || cause?.code || String(error);
};

/** Returns the error for a request that the Worker rejected as a whole. */
function requestError(url: string, status: number, { code, title, detail }: Problem): TollgateError {
  const reasons = [title ?? "the response has no results and no error", ...(detail ? [detail] : [])];
  const message = `${url} responded with ${status}: ${reasons.join(". ")}`;
  if (status === 401 || status === 403)
    return new TollgateError("unauthorized", `${message}; see docs/gateway.md`);
  return new TollgateError(status >= 500 || code === undefined ? "unanswered" : code, message);
}
