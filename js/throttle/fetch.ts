import type { Key } from "../types.ts";
import type { AcquireOptions } from "./basic-throttle.ts";
import type { LearnedLimits } from "./learned-limits.ts";
import { isOffline } from "./offline.ts";
import type { FetchRequest, FetchResponse } from "./platform.ts";
import { serverLimits } from "./server-limits.ts";

/** The options of a throttled fetch. */
export interface FetchOptions {
  /** Returns the key whose budget a request uses; its origin by default. */
  readonly keyOf?: ((request: FetchRequest) => Key) | undefined;
  /** How often a request is sent again after it was denied; 3 by default. */
  readonly retries?: number | undefined;
  /**
   * Which requests are sent again after a response that says that they were not carried out, such as a 429: `"any"`, the
   * default, or `"safe"`, those with methods that are safe to repeat. After a 503 only these are.
   */
  readonly retry?: "any" | "safe" | undefined;
  /**
   * Whether the limits that a server reports are obeyed before it denies: requests are spread evenly over the time until
   * the limit resets.
   */
  readonly learn?: boolean | undefined;
  /**
   * How many retries may be saved up, by all requests together: each success adds a tenth of one, and a request is sent again
   * only if there is one. No bound by default.
   */
  readonly retryBudget?: number | undefined;
  /** Returns a number from 0 up to 1, by which waits vary; `Math.random` by default. */
  readonly random?: (() => number) | undefined;
  /** The longest that one request may wait in all, in milliseconds; no bound by default. */
  readonly maxWait?: number | undefined;
  /** The longest that a response can make requests wait, in milliseconds; one hour by default. */
  readonly maxHold?: number | undefined;
  /**
   * What happens without a network: by default requests fail. `"wait"` lets no call through until the page is online
   * again; a request that fails because the network is gone is sent again then, if that is safe.
   */
  readonly offline?: "wait" | "fail" | undefined;
  /** Sends the requests; the platform's fetch by default. */
  readonly fetch?: ((request: FetchRequest) => Promise<FetchResponse>) | undefined;
}

const firstPause = 1_000;

/** How much longer waits are at the most, so that clients do not all come back at once: half, but not over five seconds. */
const mostJitter = 5_000;

/**
 * The default of `maxHold`: one hour.
 * @internal
 */
export const defaultMaxHold = 3_600_000;
const safe = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"];

/** Retries that are saved up: when most requests fail, repeating all of them would keep the server down. */
export class RetryBudget {
  readonly #most: number;
  #saved: number;

  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
    this.#saved = most;
  }

  /** Adds a tenth of a retry, for a success. */
  deposit(): void {
    this.#saved = Math.min(this.#saved + 0.1, this.#most);
  }

  /** Takes a retry. Returns whether there was one. */
  withdraw(): boolean {
    // Ten tenths are less than one.
    if (this.#saved < 1 - 1e-9) return false;
    this.#saved -= 1;
    return true;
  }
}

/** The errors of APIs after which no later request of the account succeeds either, until somebody pays. */
const permanent = /"(insufficient_quota|billing_hard_limit_reached|billing_not_active|access_terminated)"/;

/** Returns whether a denial says that waiting does not end it. */
async function isPermanent(response: Response): Promise<boolean> {
  if (response.headers.get("X-Should-Retry") === "false") return true;
  if (!/json/.test(response.headers.get("Content-Type") ?? "")) return false;
  return permanent.test(
    await response
      .clone()
      .text()
      .catch(() => ""),
  );
}

/** The parts of a throttle that a fetch uses. */
interface Turns {
  /** The limits that servers report, if they are learned. */
  readonly learned: Promise<LearnedLimits | undefined> | undefined;
  /** The retries that are saved up. */
  readonly retries: RetryBudget;
  wait(options: AcquireOptions, request: Request): Promise<unknown>;
  hold(key: Key, milliseconds: number): void;
}

/**
 * Waits its turn, sends the request, obeys the limits that the server returns, and sends it again where that is safe.
 * @internal
 */
export async function fetchThrough(
  throttle: Turns,
  clock: () => number,
  options: FetchOptions,
  input: RequestInfo | URL,
  init: RequestInit | undefined,
): Promise<Response> {
  const { keyOf = originOf, retries = 3, maxWait, maxHold = defaultMaxHold, random = Math.random } = options;
  const { fetch: send = (request) => fetch(request) } = options;
  const request = new Request(input, init);
  const key = keyOf(request);
  const until = maxWait === undefined ? undefined : clock() + maxWait;
  const canResend = !(init?.body instanceof ReadableStream);
  const isSafe = canResend && safe.includes(request.method);
  const most = isSafe || (canResend && options.retry !== "safe") ? retries : 0;
  const waitsOffline = isSafe && options.offline === "wait";
  const learned = await throttle.learned;
  for (let tried = 0; ; tried += 1) {
    const wait = until === undefined ? undefined : Math.max(until - clock(), 0);
    await throttle.wait({ key, signal: request.signal, maxWait: wait }, request);
    const answered = learned?.sent(key);
    let response: Response;
    try {
      response = await send(tried < most || waitsOffline ? request.clone() : request);
    } catch (error) {
      answered?.();
      if (!waitsOffline || !isOffline() || request.signal.aborted) throw error;
      // The next turn comes when the page is online again; no server has denied it.
      tried -= 1;
      continue;
    }
    const reported = serverLimits(response, clock());
    answered?.(reported);
    if (response.ok) throttle.retries.deposit();
    const { isDenied } = reported;
    // It holds no other call, since a wait would end nothing.
    if (isDenied && (await isPermanent(response))) return response;
    // A denial without a time pauses too, for longer each time.
    const wanted = reported.wait || (isDenied ? firstPause * 2 ** tried : 0);
    const jitter = wanted > 0 ? Math.min(Math.max(random(), 0), 1) || 0 : 0;
    const pause = Math.min(wanted + Math.ceil(jitter * Math.min(wanted / 2, mostJitter)), maxHold);
    if (pause > 0) throttle.hold(key, pause);
    const isRepeated = isDenied || (isSafe && response.status === 503);
    if (!isRepeated || pause === 0 || tried >= most || !throttle.retries.withdraw()) return response;
    // The body is not used, and would keep the connection open. An error of `cancel` does not matter.
    response.body?.cancel().catch(() => {});
  }
}

const originOf = (request: Request): Key => new URL(request.url).origin;
