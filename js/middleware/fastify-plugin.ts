import type { HookHandlerDoneFunction as Done, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { channel } from "../events/channels.ts";
import { wrongOption } from "../guard/errors.ts";
import { overridden } from "../guard/overridden.ts";
import type { RateLimitConfig, RateLimitHook, RateLimitOptions, RateLimitPluginOptions } from "./fastify.ts";
import { type Hook, limitingHook } from "./fastify-hook.ts";

/** The limits of the plugin that was registered last on an instance, or on one around it. */
const innermost = Symbol("tollgate");

/** The routes with a `config.rateLimit` that an app and its instances have so far. */
const routes = Symbol("tollgate.routes");

/** An instance inherits the properties of the one around it. */
type Marked = FastifyInstance & { [innermost]?: Limits; [routes]?: Route[] };

/** A route with options of its own, and the instance that has it. */
interface Route {
  readonly instance: Marked;
  readonly own: RateLimitConfig["rateLimit"];
}

// A plugin that is not awaited is loaded after the routes that follow it, and Fastify tells it nothing of those. So they are
// recorded from the start of each app that is made after this module was loaded.
/** On which Fastify tells of each app that is made. */
const apps = channel<{ readonly fastify: object }>("fastify.initialization");
apps?.subscribe((message) => {
  const fastify = message.fastify as Marked;
  const all: Route[] = [];
  fastify[routes] = all;
  fastify.addHook("onRoute", function (this: Marked, { config }) {
    if (config?.rateLimit !== undefined) all.push({ instance: this, own: config.rateLimit });
  });
});

/** Validates the options that only the plugin has, and returns them beside those of its limits. */
export function readPluginOptions(options: RateLimitPluginOptions) {
  const { global: isGlobal = true, hook = "onRequest", ...limits } = options;
  if (typeof isGlobal !== "boolean") throw wrongOption("global", isGlobal, "true or false");
  if (!hooks.includes(hook)) throw wrongOption("hook", hook, `one of ${hooks.join(", ")}`);
  return { isGlobal, hook, limits };
}

const hooks = ["onRequest", "preValidation", "preHandler"];

/** Limits the routes of an instance, and of those inside it. */
export function install(instance: FastifyInstance, options: RateLimitPluginOptions): void {
  const { isGlobal, hook, limits: defaults } = readPluginOptions(options);
  const limits = new Limits(defaults, isGlobal);
  (instance as Marked)[innermost] = limits;
  if (!Object.hasOwn(instance, "rateLimit"))
    instance.decorate("rateLimit", (own = {}) => limits.hookWith(own) as RateLimitHook);
  if (!instance.hasRequestDecorator("rateLimit")) instance.decorateRequest("rateLimit", undefined);
  // A wrong option of a route ends the start.
  for (const { instance: route, own } of (instance as Marked)[routes] ?? [])
    if (route[innermost] === limits) limits.ofRoute(own);
  instance.addHook("onRoute", function (this: Marked, { config }) {
    if (this[innermost] === limits) limits.ofRoute(config?.rateLimit);
  });
  // Not a hook of each route: this one also limits routes that exist already, and requests that have no route.
  instance.addHook(hook as "onRequest", (request, reply, done) => limits.check(request, reply, done));
}

/** The limits of one registration: its own, and those of routes with a `config.rateLimit`. */
class Limits {
  readonly #defaults: RateLimitOptions;
  readonly #global: Hook | undefined;
  readonly #byConfig = new WeakMap<object, Hook>();

  constructor(defaults: RateLimitOptions, isGlobal: boolean) {
    this.#defaults = defaults;
    this.#global = isGlobal ? limitingHook(defaults) : undefined;
  }

  check(request: FastifyRequest, reply: FastifyReply, done: Done): void {
    const hook = this.#hookFor(request);
    if (hook === undefined) done();
    else hook(request, reply, done);
  }

  #hookFor({ routeOptions, server }: FastifyRequest): Hook | undefined {
    const { rateLimit: own } = routeOptions.config;
    if (own === undefined) return this.#global;
    // Several plugins may surround a route; its own options apply once.
    return (server as Marked)[innermost] === this ? this.ofRoute(own) : undefined;
  }

  /** Returns the hook for the `config.rateLimit` of a route; undefined if it has none, or false. */
  ofRoute(own: RateLimitConfig["rateLimit"]): Hook | undefined {
    if (own === undefined || own === false) return undefined;
    if (typeof own !== "object" || own === null)
      throw wrongOption("config.rateLimit", own, "false, or options such as { policy }");
    let hook = this.#byConfig.get(own);
    if (hook === undefined) {
      hook = this.hookWith(own as RateLimitOptions);
      this.#byConfig.set(own, hook);
    }
    return hook;
  }

  hookWith(own: RateLimitOptions): Hook {
    return limitingHook(overridden(this.#defaults, own));
  }
}
