/**
 * Middleware for Express.
 * @module express
 */

import type { NextFunction, Request, RequestHandler, Response } from "express";
import { deliver, ignore } from "../guard/after.ts";
import type { ReadClient } from "../guard/client.ts";
import { Guard } from "../guard/guard.ts";
import { deny, watch, writeFields } from "../guard/node-response.ts";
import { warnOfExpressTrust } from "../guard/trust.ts";
import type { GuardOptions } from "../guard/types.ts";
import type { Verdict } from "../guard/verdict.ts";

export type * from "../guard/types.ts";

/** The options of `rateLimit` for Express. */
export type RateLimitOptions = GuardOptions<Request, [Request, Response, NextFunction], Response>;

const hint = 'set app.set("trust proxy", 1) for one proxy in front, or give key';

const adapter = {
  name: "express",
  client: <Result>(request: Request, read: ReadClient<Result>): Result => {
    const { ip, socket, headers } = request;
    if (ip === socket.remoteAddress) return read(ip, headers["x-forwarded-for"], hint);
    warnOfExpressTrust(request.app);
    return read(ip, undefined, hint);
  },
};

/**
 * Returns middleware for Express that limits requests, by the client's address unless `key` says otherwise.
 *
 * @throws `TollgateError` with the code `invalid_option` or `invalid_policy` if an option is wrong.
 *
 * @example
 * ```ts
 * import express from "express";
 * import { rateLimit } from "tollgate/express";
 *
 * const app = express();
 * app.use(rateLimit({ policy: { algorithm: "sliding_window", limit: 100, scale: "1m" } }));
 * ```
 */
export function rateLimit(options: RateLimitOptions): RequestHandler {
  const guard = new Guard(options, adapter);
  const { onDenied } = guard.options;
  const respond = (verdict: Verdict, request: Request, response: Response, next: NextFunction): void => {
    const { passes, decision } = verdict;
    writeFields(response, verdict);
    if (passes) {
      watch(response, verdict);
      next();
    } else if (typeof onDenied === "function" && decision !== undefined)
      deliver(() => onDenied(decision, request, response, next), ignore, next);
    else deny(response, verdict);
  };
  // Express 4 does not wait for promises, so errors are passed to `next` here.
  return (request, response, next) =>
    deliver(
      () => guard.check(request),
      (verdict) => respond(verdict, request, response, next),
      next,
    );
}
