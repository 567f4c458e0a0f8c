/**
 * Middleware for Fastify.
 * @module fastify
 */

import type { HookHandlerDoneFunction as Done, FastifyReply, FastifyRequest } from "fastify";
import { deliver, ignore } from "../guard/after.ts";
import { keyOfClient } from "../guard/client.ts";
import { mergeFields } from "../guard/fields.ts";
import { Guard, type Verdict } from "../guard/guard.ts";
import { watch } from "../guard/node-response.ts";
import type { GuardOptions } from "../guard/types.ts";
import { denialFields } from "../guard/web-response.ts";

export type * from "../guard/types.ts";

/** The options of `rateLimit` for Fastify. */
export type RateLimitOptions = GuardOptions<FastifyRequest, [FastifyRequest, FastifyReply]>;

/** A hook for `onRequest`, `preParsing`, `preValidation` or `preHandler`. */
export type RateLimitHook = (request: FastifyRequest, reply: FastifyReply, done: Done) => void;

const hint = 'set Fastify({ trustProxy: "10.0.0.1" }) with the address of your proxy, or give key';

const adapter = {
  name: "fastify",
  keyOf: ({ ip, socket, headers }: FastifyRequest) =>
    keyOfClient(ip, ip === socket?.remoteAddress ? headers["x-forwarded-for"] : undefined, hint),
};

/**
 * Returns a hook for Fastify that limits requests, by the client's address unless `key` says otherwise. A `key` that
 * reads the body needs the hook `preHandler`.
 *
 * @throws `TollgateError` with the code `invalid_option` or `invalid_policy` if an option is wrong.
 *
 * @example
 * ```ts
 * import Fastify from "fastify";
 * import { rateLimit } from "tollgate/fastify";
 *
 * const app = Fastify();
 * app.addHook("onRequest", rateLimit({ policy: { algorithm: "sliding_window", limit: 100, scale: "1m" } }));
 * ```
 */
export function rateLimit(options: RateLimitOptions): RateLimitHook {
  const guard = new Guard(options, adapter);
  const { onDenied } = guard.options;
  const respond = (verdict: Verdict, request: FastifyRequest, reply: FastifyReply, done: Done): void => {
    const { passes, decision } = verdict;
    mergeFields(verdict.fields, {
      get: (name) => reply.getHeader(name),
      set: (name, value) => reply.header(name, value),
    });
    if (passes) {
      watch(reply.raw, verdict);
      done();
    } else if (typeof onDenied === "function" && decision !== undefined)
      deliver(() => onDenied(decision, request, reply), ignore, failed(done));
    else reply.code(verdict.status).headers(denialFields).send(verdict.body);
  };
  return (request, reply, done) =>
    deliver(
      () => guard.check(request),
      (verdict) => respond(verdict, request, reply, done),
      failed(done),
    );
}

const failed = (done: Done) => (error: unknown) =>
  done(error instanceof Error ? error : new Error(String(error)));
