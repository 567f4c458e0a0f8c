import type { HookHandlerDoneFunction as Done, FastifyReply, FastifyRequest } from "fastify";
import { deliver, ignore } from "../guard/after.ts";
import type { ReadClient } from "../guard/client.ts";
import { mergeFields } from "../guard/fields.ts";
import { Guard } from "../guard/guard.ts";
import { watch } from "../guard/node-response.ts";
import { warnOfFastifyTrust } from "../guard/trust.ts";
import type { Verdict } from "../guard/verdict.ts";
import { denialFields } from "../guard/web-response.ts";
import type { RateLimitOptions } from "./fastify.ts";

/** A hook that limits requests. */
export type Hook = (request: FastifyRequest, reply: FastifyReply, done: Done) => void;

const hint = 'set Fastify({ trustProxy: "10.0.0.1" }) with the address of your proxy, or give key';

const adapter = {
  name: "fastify",
  client: <Result>(request: FastifyRequest, read: ReadClient<Result>): Result => {
    const { ip, socket, headers } = request;
    if (ip === socket?.remoteAddress) return read(ip, headers["x-forwarded-for"], hint);
    warnOfFastifyTrust(request);
    return read(ip, undefined, hint);
  },
};

/** Returns a hook that limits requests. */
export function limitingHook(options: RateLimitOptions): Hook {
  const guard = new Guard(options, adapter);
  const { onDenied } = guard.options;
  const respond = (verdict: Verdict, request: FastifyRequest, reply: FastifyReply, done: Done): void => {
    const { passes, decision } = verdict;
    mergeFields(verdict.fields, {
      get: (name) => reply.getHeader(name),
      set: (name, value) => reply.header(name, value),
    });
    // Only the plugin decorates requests: a property that some have and some have not makes all slower.
    if (decision !== undefined && "rateLimit" in request) request.rateLimit = decision;
    if (passes) {
      watch(reply.raw, verdict, () => reply);
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
