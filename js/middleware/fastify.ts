/**
 * Middleware for Fastify.
 * @module fastify
 */

import type { HookHandlerDoneFunction as Done, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { wrongOption } from "../guard/errors.ts";
import type { GuardOptions } from "../guard/types.ts";
import type { Decision } from "../types.ts";
import { type Hook, limitingHook } from "./fastify-hook.ts";
import { install, readPluginOptions } from "./fastify-plugin.ts";

export type * from "../guard/types.ts";

/** The options of `rateLimit` for a hook, and for the `config.rateLimit` of a route. */
export type RateLimitOptions = GuardOptions<FastifyRequest, [FastifyRequest, FastifyReply], FastifyReply>;

/** The options of `rateLimit` as a plugin. */
export interface RateLimitPluginOptions extends RateLimitOptions {
  /** False to limit only routes with a `config.rateLimit`, for which the other options are defaults. */
  readonly global?: boolean | undefined;
  /** The hook that limits; `"preHandler"` if `key` reads the body. `"onRequest"` by default. */
  readonly hook?: RateLimitHookName | undefined;
}

/** The hooks in which requests can be limited. */
export type RateLimitHookName = "onRequest" | "preValidation" | "preHandler";

/** A hook for `onRequest`, `preValidation` or `preHandler`, which `register` takes as a plugin, too. */
export interface RateLimitHook {
  (request: FastifyRequest, reply: FastifyReply, done: Done): void;
  (instance: FastifyInstance, options: Partial<RateLimitPluginOptions>, done: (error?: Error) => void): void;
}

declare module "fastify" {
  interface FastifyInstance {
    /** Returns a hook that limits by these options, and by the plugin's own where they have none. */
    rateLimit(options?: RateLimitOptions): RateLimitHook;
  }
  interface FastifyRequest {
    /** The last decision about the request; undefined if the plugin has not limited it. */
    rateLimit?: Decision | undefined;
  }
  interface FastifyContextConfig extends RateLimitConfig {}
}

/** The `config` of a route. Inherited, so that the types of @fastify/rate-limit, which has that name, fit beside it. */
export interface RateLimitConfig {
  /** The route's own options, or false if it is not limited. Other options are those of the plugin. */
  rateLimit?: RateLimitOptions | Partial<Record<"max" | "timeWindow", unknown>> | false | undefined;
}

/**
 * Returns a hook for Fastify that limits requests, by the client's address unless `key` says otherwise. `register`
 * accepts it as well. A `key` that reads the body needs the hook `preHandler`.
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
export function rateLimit(options: RateLimitPluginOptions): RateLimitHook;
/**
 * The plugin: limits the routes of the instance that it is registered on, and of the instances inside. A route's
 * `config.rateLimit` has options of its own, or is false.
 *
 * @example
 * ```ts
 * import Fastify from "fastify";
 * import { rateLimit } from "tollgate/fastify";
 *
 * const app = Fastify();
 * app.register(rateLimit, { policy: { algorithm: "sliding_window", limit: 100, scale: "1m" } });
 * app.get("/health", { config: { rateLimit: false } }, async () => "ok");
 * ```
 */
export function rateLimit(
  instance: FastifyInstance,
  options: RateLimitPluginOptions,
  done: (error?: Error) => void,
): void;
export function rateLimit(
  given: RateLimitPluginOptions | FastifyInstance,
  options?: RateLimitPluginOptions,
  done?: (error?: Error) => void,
): RateLimitHook | undefined {
  if (!isInstance(given)) return hookAndPlugin(given);
  installed(given, options as RateLimitPluginOptions, done as () => void);
  return undefined;
}

export default rateLimit;

/** Tells an instance, to which a plugin is added, from a request or options. */
const isInstance = (value: unknown): value is FastifyInstance =>
  typeof (value as Partial<FastifyInstance> | null)?.addHook === "function";

/** Installs the plugin. Fastify does not catch what a plugin throws. */
function installed(
  instance: FastifyInstance,
  options: RateLimitPluginOptions,
  done: (error?: Error) => void,
): void {
  try {
    install(instance, options);
  } catch (error) {
    done(error as Error);
    return;
  }
  done();
}

/** Returns a function that is a hook when a request comes first, and a plugin when an instance does. */
function hookAndPlugin(given: RateLimitPluginOptions): RateLimitHook {
  const options = { ...given };
  const { isGlobal, limits } = readPluginOptions(options);
  const limit = isGlobal ? limitingHook(given && limits) : onlyRegistered;
  const hook = (first: FastifyRequest | FastifyInstance, second: object, done: Done): void =>
    isInstance(first)
      ? installed(first, { ...options, ...second }, done)
      : limit(first, second as FastifyReply, done);
  return asPlugin(hook) as RateLimitHook;
}

const onlyRegistered: Hook = (_request, _reply, done) =>
  done(wrongOption("global", false, "it with app.register"));

/** Marks a plugin, as `fastify-plugin` does: it adds its hook to the instance that it is registered on. */
function asPlugin<Plugin extends object>(plugin: Plugin): Plugin {
  return Object.assign(plugin, {
    [Symbol.for("skip-override")]: true,
    [Symbol.for("fastify.display-name")]: "tollgate",
    [Symbol.for("plugin-meta")]: { name: "tollgate", fastify: "5.x" },
  });
}

asPlugin(rateLimit);
