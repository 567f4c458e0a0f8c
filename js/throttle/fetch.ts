import type { Key } from "../types.ts";
import type { BasicThrottle } from "./basic-throttle.ts";
import { isOffline } from "./offline.ts";
import type { FetchRequest, FetchResponse } from "./platform.ts";
import { retryDelay } from "./retry-delay.ts";

/** The options of a throttled fetch. */
export interface FetchOptions {
  /** Returns the key whose budget a request uses; its origin by default. */
  readonly keyOf?: ((request: FetchRequest) => Key) | undefined;
  /** How often a request is sent again after a 429 or 503, if that is safe; 3 by default. */
  readonly retries?: number | undefined;
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

/**
 * The default of `maxHold`: one hour.
 * @internal
 */
export const defaultMaxHold = 3_600_000;
const safe = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"];

/** Returns whether a request may be sent again: its method is idempotent, and its body can be sent once more. */
const isRepeatable = (request: Request, init: RequestInit | undefined) =>
  safe.includes(request.method) && !(init?.body instanceof ReadableStream);

/**
 * Waits its turn, sends the request, obeys the limits that the server returns, and sends it again where that is safe.
 * @internal
 */
export async function fetchThrough(
  throttle: Pick<BasicThrottle, "acquire" | "hold">,
  clock: () => number,
  options: FetchOptions,
  input: RequestInfo | URL,
  init: RequestInit | undefined,
): Promise<Response> {
  const { keyOf = originOf, retries = 3, maxWait, maxHold = defaultMaxHold } = options;
  const { fetch: send = (request) => fetch(request) } = options;
  const request = new Request(input, init);
  const key = keyOf(request);
  const until = maxWait === undefined ? undefined : clock() + maxWait;
  const mayRepeat = isRepeatable(request, init);
  const most = mayRepeat ? retries : 0;
  const waitsOffline = mayRepeat && options.offline === "wait";
  for (let tried = 0; ; tried += 1) {
    const wait = until === undefined ? undefined : Math.max(until - clock(), 0);
    await throttle.acquire({ key, signal: request.signal, maxWait: wait });
    let response: Response;
    try {
      response = await send(tried < most || waitsOffline ? request.clone() : request);
    } catch (error) {
      if (!waitsOffline || !isOffline() || request.signal.aborted) throw error;
      // The next turn comes when the page is online again; no server has denied it.
      tried -= 1;
      continue;
    }
    const delay = retryDelay(response, clock());
    // A 429 without a time pauses too, for longer each time.
    const wanted = delay === 0 && response.status === 429 ? firstPause * 2 ** tried : delay;
    const pause = Math.min(wanted, maxHold);
    if (pause > 0) throttle.hold(key, pause);
    const isDenied = response.status === 429 || response.status === 503;
    if (!isDenied || pause === 0 || tried >= most) return response;
    // The body is not used, and would keep the connection open. An error of `cancel` does not matter.
    response.body?.cancel().catch(() => {});
  }
}

const originOf = (request: Request): Key => new URL(request.url).origin;
