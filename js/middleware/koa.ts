/**
 * Middleware for Koa.
 * @module koa
 */

import type { Context, Middleware, Next } from "koa";
import { isPromise } from "../guard/after.ts";
import type { ReadClient } from "../guard/client.ts";
import { Guard } from "../guard/guard.ts";
import { watch, writeFields } from "../guard/node-response.ts";
import type { GuardOptions } from "../guard/types.ts";
import type { Fields } from "../guard/verdict.ts";
import { warnOnce } from "../guard/warnings.ts";
import { denialFields } from "../guard/web-response.ts";

export type * from "../guard/types.ts";

/** The options of `rateLimit` for Koa. */
export type RateLimitOptions = GuardOptions<Context, [Context, Next], Context["res"]>;

const hint = "set app.proxy = true and app.maxIpsCount = 1 for one proxy in front, or give key";

const adapter = {
  name: "koa",
  client: <Result>({ app, ip, req }: Context, read: ReadClient<Result>): Result => {
    if (app.proxy && app.maxIpsCount === 0 && app.proxyIpHeader === "X-Forwarded-For")
      warnOnce(
        "koa",
        "app.proxy without app.maxIpsCount takes the address that a client names; set how many proxies",
      );
    const forwarded = ip === req.socket.remoteAddress ? req.headers["x-forwarded-for"] : undefined;
    return read(ip, forwarded, hint);
  },
};

/** Copies headers to an error: Koa drops all others when a handler throws. */
function keepFields({ res }: Context, error: unknown, fields: Fields): void {
  if (typeof error !== "object" || error === null) return;
  const kept = Object.keys(fields).map((name) => [name, res.getHeader(name)]);
  const { headers } = error as { headers?: object };
  Reflect.set(error, "headers", { ...Object.fromEntries(kept), ...headers });
}

/**
 * Returns middleware for Koa that limits requests, by the client's address unless `key` says otherwise.
 *
 * @throws `TollgateError` with the code `invalid_option` or `invalid_policy` if an option is wrong.
 *
 * @example
 * ```js
 * import Koa from "koa";
 * import { rateLimit } from "tollgate/koa";
 *
 * const app = new Koa();
 * app.use(rateLimit({ policy: { algorithm: "sliding_window", limit: 100, scale: "1m" } }));
 * ```
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  const guard = new Guard(options, adapter);
  const { onDenied } = guard.options;
  return async (ctx, next) => {
    const checked = guard.check(ctx);
    const verdict = isPromise(checked) ? await checked : checked;
    writeFields(ctx.res, verdict);
    if (verdict.passes) {
      watch(ctx.res, verdict);
      try {
        await next();
      } catch (error) {
        keepFields(ctx, error, verdict.fields);
        throw error;
      }
    } else if (typeof onDenied === "function" && verdict.decision !== undefined) {
      await onDenied(verdict.decision, ctx, next);
    } else {
      ctx.status = verdict.status;
      ctx.set(denialFields);
      ctx.body = verdict.body;
    }
  };
}
