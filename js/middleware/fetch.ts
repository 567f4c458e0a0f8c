/**
 * Middleware for handlers of `fetch`.
 * @module fetch
 */

import { isPromise } from "../guard/after.ts";
import { wrongOption } from "../guard/errors.ts";
import { Guard } from "../guard/guard.ts";
import { watch, writeFields } from "../guard/node-response.ts";
import { clientOfPlatform, isContext, nodeResponseOf } from "../guard/platform-client.ts";
import type { GuardOptions } from "../guard/types.ts";
import type { Verdict } from "../guard/verdict.ts";
import { denial, failure, withFields } from "../guard/web-response.ts";

export type * from "../guard/types.ts";

/** The options of `rateLimit` for fetch handlers. `onDenied` returns the response. */
export type RateLimitOptions = GuardOptions<Request, [Request], Response>;

/** A handler of requests, with the further arguments of its server. */
export type FetchHandler<Rest extends unknown[]> = (
  request: Request,
  ...rest: Rest
) => Response | PromiseLike<Response>;

/**
 * Returns a function that takes a request, and the server's further argument, and returns the response to a denied
 * request; undefined if the request may go on.
 *
 * @throws `TollgateError` with the code `invalid_option` or `invalid_policy` if an option is wrong.
 *
 * @example
 * ```ts
 * import { ipKey } from "tollgate";
 * import { rateLimit } from "tollgate/fetch";
 *
 * const policy = { algorithm: "sliding_window", limit: 100, scale: "1m" } as const;
 * const limited = rateLimit({ policy, key: (request) => ipKey(request.headers.get("X-Real-IP") ?? "0.0.0.0") });
 *
 * async function GET(request: Request): Promise<Response> {
 *   return (await limited(request)) ?? new Response("Hello");
 * }
 * ```
 */
export function rateLimit(
  options: RateLimitOptions,
): (request: Request, platform?: unknown) => Promise<Response | undefined>;
/**
 * Returns a handler that limits the requests of another one. Every response gets the headers of the limit.
 *
 * @example
 * ```ts
 * import { rateLimit } from "tollgate/fetch";
 *
 * const policy = { algorithm: "sliding_window", limit: 100, scale: "1m" } as const;
 * export default { fetch: rateLimit({ policy }, () => new Response("Hello")) };
 * ```
 */
export function rateLimit<Rest extends unknown[]>(
  options: RateLimitOptions,
  handler: FetchHandler<Rest>,
): (request: Request, ...rest: Rest) => Promise<Response>;
export function rateLimit(options: RateLimitOptions, handler?: FetchHandler<unknown[]>) {
  const guard = new Guard<Request, [Request], Response>(options, { name: "fetch", client: clientOfPlatform });
  const { charge, onDenied } = guard.options;
  if (handler === undefined && charge !== "all")
    throw wrongOption("charge", charge, "rateLimit(options, handler), whose response decides");

  const denied = async (verdict: Verdict, request: Request): Promise<Response> => {
    if (typeof onDenied !== "function" || verdict.decision === undefined) return denial(verdict);
    return withFields((await onDenied(verdict.decision, request)) as Response, verdict.fields);
  };
  if (handler === undefined)
    return async (request: Request, platform?: unknown) => {
      const verdict = await guard.check(request, platform);
      // How the response ends is not known here.
      verdict.finish?.();
      return verdict.passes ? undefined : denied(verdict, request);
    };
  return async (request: Request, ...rest: unknown[]) => {
    const verdict = await guard.check(request, rest[0]);
    const outgoing = nodeResponseOf(rest[0]);
    if (outgoing !== undefined) {
      // Node's response writes the headers, and emits an event when it has ended.
      writeFields(outgoing, verdict);
      if (!verdict.passes) return denied({ ...verdict, fields: {} }, request);
      let sent: Response | undefined;
      watch(outgoing, verdict, () => sent ?? failure(outgoing.statusCode));
      sent = await handler(request, ...rest);
      return sent;
    }
    if (!verdict.passes) return denied(verdict, request);
    let isSuccess = false;
    let sent: Response | undefined;
    try {
      sent = await handler(request, ...rest);
      isSuccess = sent.status < 400;
      return withFields(sent, verdict.fields);
    } finally {
      // A Worker stops work after its response, unless it waits for it.
      const finished = verdict.finish?.(isSuccess, () => sent ?? failure());
      if (isPromise(finished)) rest.find(isContext)?.waitUntil(finished);
    }
  };
}
