import { wrongOption } from "../guard/errors.ts";
import type { Decision } from "../types.ts";
import { LimitersByWindow, usedBy, waitOf } from "./limiter.ts";
import type { LimiterSource, WindowAlgorithm } from "./types.ts";

/** The options of @fastify/rate-limit that change how hits are counted. */
export interface FastifyStoreOptions {
  /** Whether a denied hit starts the window anew. */
  readonly continueExceeding?: boolean | undefined;
  /** Not supported: a wait is exact here. */
  readonly exponentialBackoff?: boolean | undefined;
  /** The route of a store of its own. */
  readonly routeInfo?:
    | {
        /** Its method. */
        readonly method?: unknown;
        /** Its path. */
        readonly url?: unknown;
      }
    | undefined;
}

/** The callback of @fastify/rate-limit, called with the result of a hit. */
export type FastifyStoreCallback = (
  error: Error | null,
  result?: {
    /** The hits that count now. */
    current: number;
    /** The wait after a denied hit, in milliseconds; after an allowed one, the time until no hit counts. */
    ttl: number;
  },
) => void;

/**
 * A store for @fastify/rate-limit: limiters in memory, or those of `FastifyStore.over`.
 *
 * @example
 * ```ts
 * import rateLimit from "@fastify/rate-limit";
 * import Fastify from "fastify";
 * import { FastifyStore } from "tollgate/stores";
 *
 * const app = Fastify();
 * await app.register(rateLimit, { max: 100, timeWindow: 60_000, store: FastifyStore });
 * ```
 */
export class FastifyStore {
  readonly #options: FastifyStoreOptions;
  #limiters = new LimitersByWindow(undefined, "fix_window_per_key", "count");
  #prefix = "";

  /** Called by the plugin with its options. */
  constructor(options: FastifyStoreOptions = {}) {
    if (options.exponentialBackoff === true)
      throw wrongOption("exponentialBackoff", true, "false; a wait is exact here");
    this.#options = options;
  }

  /** Returns a store over limiters that a function makes of a policy, or over Durable Objects. */
  static over(
    source: LimiterSource | undefined,
    algorithm: WindowAlgorithm = "fix_window_per_key",
  ): new (
    options?: FastifyStoreOptions,
  ) => FastifyStore {
    const limiters = new LimitersByWindow(source, algorithm, "count");
    return class extends FastifyStore {
      constructor(options?: FastifyStoreOptions) {
        super(options);
        this.#limiters = limiters;
      }
    };
  }

  /** Counts a hit. */
  incr(key: string, callback: FastifyStoreCallback, timeWindow: number, max: number): void {
    callBack(callback, max, async () => {
      const limiter = this.#limiters.of("window", max, timeWindow);
      const decision = await limiter.hit(this.#prefix + key);
      if (decision.allowed || this.#options.continueExceeding !== true) return decision;
      await limiter.set(this.#prefix + key, decision.count);
      return { ...decision, retryAfter: timeWindow };
    });
  }

  /** Passes the hits of a client to the callback. Changes no state. */
  read(key: string, callback: FastifyStoreCallback, timeWindow: number, max: number): void {
    callBack(callback, max, async () =>
      this.#limiters.of("window", max, timeWindow).peek(this.#prefix + key, 0),
    );
  }

  /** Returns the store of a route with options of its own. */
  child(route: object): FastifyStore {
    const options: FastifyStoreOptions = route;
    const { method = "", url = "" } = options.routeInfo ?? {};
    const store = new FastifyStore(options);
    store.#limiters = this.#limiters;
    store.#prefix = `${this.#prefix}${method}${url}-`;
    return store;
  }
}

function callBack(callback: FastifyStoreCallback, max: number, decide: () => Promise<Decision>): void {
  decide().then(
    (decision) => callback(null, { current: usedBy(decision, max), ttl: waitOf(decision) }),
    (error) => callback(error),
  );
}
