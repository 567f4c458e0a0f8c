/**
 * A guard and a decorator for NestJS.
 * @module nest
 */

import { type CanActivate, type ExecutionContext, HttpException, SetMetadata } from "@nestjs/common";
import type { ReadClient } from "../guard/client.ts";
import { misplacedOption, wrongOption } from "../guard/errors.ts";
import { mergeFields } from "../guard/fields.ts";
import { Guard } from "../guard/guard.ts";
import { type NodeResponse, watch, writeFields } from "../guard/node-response.ts";
import { checkOwnOptions } from "../guard/options.ts";
import { overridden } from "../guard/overridden.ts";
import { warnOfExpressTrust, warnOfFastifyTrust } from "../guard/trust.ts";
import type { GuardOptions } from "../guard/types.ts";
import type { Verdict } from "../guard/verdict.ts";
import { denialFields } from "../guard/web-response.ts";
import type { Decision } from "../types.ts";

export type * from "../guard/types.ts";

/** The part of a request that Express and Fastify have in common. */
export interface NestRequest {
  /** The client's address, as the framework finds it. */
  readonly ip?: string | undefined;
  /** The headers, by lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The connection. */
  readonly socket: {
    /** The address at its other end. */
    readonly remoteAddress?: string | undefined;
  };
  // biome-ignore lint/suspicious/noExplicitAny: what the framework and other guards add, such as `user`.
  readonly [name: string]: any;
}

/**
 * The options of a `RateLimitGuard`, and of `@RateLimit`. `onDenied` is called with the decision and the context, and returns
 * or throws the exception of a denial.
 */
// biome-ignore lint/suspicious/noExplicitAny: the response is that of Express or Fastify.
export type RateLimitOptions = GuardOptions<NestRequest, [ExecutionContext], any>;

/** The exception of a denied request: a 429, or a 503 if the limiter failed under `onError: "deny"`. */
export class RateLimitException extends HttpException {
  /** The decision; undefined if the limiter failed. */
  readonly decision: Decision | undefined;

  /** Creates the exception; `problem` is the body of the response (RFC 9457). */
  constructor(problem: Readonly<Record<string, unknown>>, status: number, decision?: Decision) {
    super(problem, status);
    this.decision = decision;
  }
}

/** Returns the name under which Nest stores the options for the guards of a name. */
const metadataOf = (name: string) => (name === "" ? "tollgate:rateLimit" : `tollgate:rateLimit:${name}`);

/**
 * Replaces options of the `RateLimitGuard` for a controller or a handler, one by one; `false` turns the limit off. The
 * decorator of a handler comes before that of its controller. In memory, what is decorated counts for itself. Of several guards,
 * `name` chooses those with that name.
 *
 * @throws `TollgateError` with the code `invalid_option` or `invalid_policy` if an option is wrong.
 *
 * @example
 * ```ts
 * import { Controller, Get, Post } from "@nestjs/common";
 * import { RateLimit } from "tollgate/nest";
 *
 * @Controller()
 * class AuthController {
 *   @RateLimit({ policy: { name: "login", algorithm: "fix_window_per_key", limit: 5, scale: "15m" }, charge: "failures" })
 *   @Post("login")
 *   login() {}
 *
 *   @RateLimit(false)
 *   @Get("health")
 *   health() {}
 * }
 * ```
 */
export const RateLimit = (options: RateLimitOptions | false, name = ""): MethodDecorator & ClassDecorator => {
  checkName(name);
  if (options !== false && (typeof options !== "object" || options === null))
    throw wrongOption("RateLimit", options, "false, or options such as { policy }");
  if (options !== false) checkOwnOptions(options);
  return SetMetadata(metadataOf(name), options) as MethodDecorator & ClassDecorator;
};

/** Reads the decorator's options, as Nest stores metadata; a class inherits those of the class that it extends. */
const optionsOf = (name: string, target: object): RateLimitOptions | false | undefined =>
  (
    Reflect as unknown as { getMetadata(key: string, target: object): RateLimitOptions | false | undefined }
  ).getMetadata(metadataOf(name), target);

function checkName(name: unknown): void {
  if (typeof name !== "string") throw wrongOption("name", name, 'a string such as "login"');
}

const hint =
  'call app.set("trust proxy", 1) for one proxy in front, in Fastify set trustProxy to its address, or give key';

const adapter = {
  name: "nest",
  client: <Result>(request: NestRequest, read: ReadClient<Result>): Result => {
    const { ip, socket, headers } = request;
    if (ip === socket?.remoteAddress) return read(ip, headers["x-forwarded-for"], hint);
    if (typeof request["app"]?.get === "function") warnOfExpressTrust(request["app"]);
    else warnOfFastifyTrust(request);
    return read(ip, undefined, hint);
  },
};

type RouteGuard = Guard<NestRequest, [ExecutionContext], unknown>;

/**
 * Limits the requests of a Nest app, a controller or a handler, by the client's address unless `key` says otherwise. Headers
 * are written on Express and Fastify alike. A denial is a `RateLimitException`.
 *
 * @example
 * ```ts
 * import { Module } from "@nestjs/common";
 * import { APP_GUARD } from "@nestjs/core";
 * import { RateLimitGuard } from "tollgate/nest";
 *
 * const guard = new RateLimitGuard({ policy: { algorithm: "sliding_window", limit: 100, scale: "1m" } });
 *
 * @Module({ providers: [{ provide: APP_GUARD, useValue: guard }] })
 * class AppModule {}
 * ```
 */
export class RateLimitGuard implements CanActivate {
  readonly #options: RateLimitOptions;
  readonly #name: string;
  readonly #guard: RouteGuard;
  readonly #byOptions = new WeakMap<object, RouteGuard>();

  /**
   * Creates the guard. With a `name`, only `@RateLimit(…, name)` replaces its options: an app may have several guards.
   *
   * @throws `TollgateError` with the code `invalid_option` or `invalid_policy` if an option is wrong.
   */
  constructor(options: RateLimitOptions, name = "") {
    checkName(name);
    this.#name = name;
    this.#guard = new Guard(options, adapter);
    this.#options = { ...options };
  }

  /** Called by Nest. Throws the exception of a denial. */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const guard = this.#guardOf(context);
    if (guard === undefined) return true;
    const { request, response } = exchangeOf(context);
    const verdict = await guard.check(request);
    write(response, verdict);
    if (verdict.passes) {
      watch(rawOf(response), verdict, () => response);
      return true;
    }
    const { onDenied } = guard.options;
    const { decision } = verdict;
    const own =
      typeof onDenied === "function" && decision !== undefined
        ? await onDenied(decision, context)
        : undefined;
    throw own ?? exceptionOf(response, verdict);
  }

  #guardOf(context: ExecutionContext): RouteGuard | undefined {
    const own = optionsOf(this.#name, context.getHandler()) ?? optionsOf(this.#name, context.getClass());
    if (own === undefined) return this.#guard;
    if (own === false) return undefined;
    let guard = this.#byOptions.get(own);
    if (guard === undefined) {
      guard = new Guard(overridden(this.#options, own), adapter);
      this.#byOptions.set(own, guard);
    }
    return guard;
  }
}

/** The response of Fastify, around that of Node. */
interface Reply {
  readonly raw: NodeResponse;
  getHeader(name: string): unknown;
  header(name: string, value: string): unknown;
}

type NestResponse = NodeResponse | Reply;

const isReply = (response: NestResponse): response is Reply => "raw" in response;

const rawOf = (response: NestResponse): NodeResponse => (isReply(response) ? response.raw : response);

/** Returns request and response of a call over HTTP, or of GraphQL over it. */
function exchangeOf(context: ExecutionContext): { request: NestRequest; response: NestResponse } {
  const kind = context.getType<string>();
  const { req, res } =
    kind === "graphql" ? (context.getArgByIndex(2) ?? {}) : { req: undefined, res: undefined };
  const http = context.switchToHttp();
  const request = kind === "http" ? http.getRequest() : req;
  const response = kind === "http" ? http.getResponse() : (res ?? req?.res);
  if (request === undefined || response === undefined)
    throw misplacedOption(
      "RateLimitGuard",
      `in a call of ${kind}`,
      '@RateLimit(false) there: it limits "http", and "graphql" with { req, res } in its context',
    );
  return { request, response };
}

function write(response: NestResponse, verdict: Verdict): void {
  if (!isReply(response)) writeFields(response, verdict);
  else
    mergeFields(verdict.fields, {
      get: (name) => response.getHeader(name),
      set: (name, value) => response.header(name, value),
    });
}

/** Returns the exception of a denial. Nest writes its body as JSON, and leaves a type that is there. */
function exceptionOf(response: NestResponse, { body, status, decision }: Verdict): RateLimitException {
  for (const [name, value] of Object.entries(denialFields))
    if (isReply(response)) response.header(name, value);
    else if (!response.headersSent) response.setHeader(name, value);
  return new RateLimitException(JSON.parse(body), status, decision);
}
