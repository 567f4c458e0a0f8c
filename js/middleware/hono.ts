/**
 * Middleware for Hono.
 * @module hono
 */

import type { Context, Env, MiddlewareHandler, Next } from "hono";
import { isPromise } from "../guard/after.ts";
import type { ReadClient } from "../guard/client.ts";
import { mergeFields } from "../guard/fields.ts";
import { Guard } from "../guard/guard.ts";
import { watch, writeFields } from "../guard/node-response.ts";
import { clientOfPlatform, nodeResponseOf, type WaitContext } from "../guard/platform-client.ts";
import type { GuardOptions } from "../guard/types.ts";
import type { Fields } from "../guard/verdict.ts";
import { denialFields, failure, withFields } from "../guard/web-response.ts";

export type * from "../guard/types.ts";

/** The options of `rateLimit` for Hono. `onDenied` returns the response. */
// biome-ignore lint/suspicious/noExplicitAny: as Hono has it, so that a guard fits an app with any variables.
export type RateLimitOptions<E extends Env = any> = GuardOptions<Context<E>, [Context<E>, Next], Response>;

const adapter = {
  name: "hono",
  client: <Result>(c: Context, read: ReadClient<Result>): Result => clientOfPlatform(c.req.raw, read, c.env),
};

/** The variable with the headers of all guards that a request has passed. */
const written = "tollgate:headers";

/** Adds headers to a response that does not exist yet. Returns those of all guards so far. */
function prepare(c: Context, fields: Fields): Fields {
  const all: Record<string, string> = c.get(written) ?? {};
  c.set(written, all);
  mergeFields(fields, {
    get: (name) => all[name],
    set: (name, value) => {
      all[name] = value;
      c.header(name, value);
    },
  });
  return all;
}

/** Returns the context of a Worker; undefined if there is none, where Hono throws. */
function contextOf(c: Context): WaitContext | undefined {
  try {
    return c.executionCtx;
  } catch {
    return undefined;
  }
}

/** Returns the response with the headers. A handler that returned a new response has dropped them. */
function completed(response: Response, fields: Fields): Response {
  const [first] = Object.keys(fields);
  return first === undefined || response.headers.has(first) ? response : withFields(response, fields);
}

/**
 * Returns middleware for Hono that limits requests, by the client's address unless `key` says otherwise.
 *
 * @throws `TollgateError` with the code `invalid_option` or `invalid_policy` if an option is wrong.
 *
 * @example
 * ```ts
 * import { Hono } from "hono";
 * import { rateLimit } from "tollgate/hono";
 *
 * const app = new Hono();
 * app.use(rateLimit({ policy: { algorithm: "sliding_window", limit: 100, scale: "1m" } }));
 * ```
 */
// biome-ignore lint/suspicious/noExplicitAny: as Hono has it.
export function rateLimit<E extends Env = any>(options: RateLimitOptions<E>): MiddlewareHandler<E> {
  const guard = new Guard(options, adapter);
  const { onDenied } = guard.options;
  return async (c, next) => {
    const checked = guard.check(c);
    const verdict = isPromise(checked) ? await checked : checked;
    const outgoing = nodeResponseOf(c.env);
    if (outgoing !== undefined) writeFields(outgoing, verdict);
    const fields = outgoing === undefined ? prepare(c, verdict.fields) : verdict.fields;
    if (!verdict.passes) {
      if (typeof onDenied !== "function" || verdict.decision === undefined)
        return c.body(verdict.body, verdict.status, denialFields);
      const response = (await onDenied(verdict.decision, c, next)) as Response | undefined;
      return response === undefined || outgoing !== undefined ? response : completed(response, fields);
    }
    // Node's response emits an event when it has ended.
    if (outgoing !== undefined) {
      watch(outgoing, verdict, () => (c.finalized ? c.res : failure(outgoing.statusCode)));
      return next();
    }
    let isSuccess = false;
    let sent: Response | undefined;
    try {
      await next();
      sent = c.res;
      isSuccess = c.error === undefined && sent.status < 400;
    } finally {
      const finished = verdict.finish?.(isSuccess, () => sent ?? failure());
      // A Worker stops work after its response, unless it waits for it.
      if (isPromise(finished)) contextOf(c)?.waitUntil(finished);
    }
    const { res } = c;
    const response = completed(res, fields);
    if (response !== res) c.res = response;
    return undefined;
  };
}
