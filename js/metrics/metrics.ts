import { checkFunctions, copiedOptions } from "../checks.ts";
import { integer, invalidField } from "../errors/error.ts";
import { decisions, errors } from "../events/channels.ts";
import type { DecisionMessage, ErrorMessage, OnDecision } from "../events/messages.ts";
import { isInteger } from "../policy/durations.ts";
import type { FetchResponse } from "../throttle/platform.ts";
import type { Key } from "../types.ts";
import { prometheusText } from "./combined.ts";
import { Counters, Histograms } from "./counters.ts";
import { contentType, heading, labelValue, sample } from "./exposition.ts";
import { type CountingLimiter, limitersText } from "./limiters.ts";
import { type NodeResponse, type Reply, respond } from "./respond.ts";
import { SpaceSaving } from "./space-saving.ts";

/** The options of `metrics`. */
export interface MetricsOptions {
  /** Limiters whose own counters are shown, by the names for the label `name`. */
  readonly limiters?: Readonly<Record<string, CountingLimiter>> | undefined;
  /** How many of the most denied keys are shown: 10 by default, 0 for none, at most 1,000. */
  readonly topKeys?: number | undefined;
  /** Returns how a key is shown, such as its hash; by default the key itself. */
  readonly keyLabel?: ((key: Key) => string) | undefined;
}

/** The path of `koa`, which is middleware and not the handler of a route. */
const path = "/metrics";

/** The counters for each of the most denied keys that is shown: the more, the smaller the error. */
const countersForKey = 16;

/** The most series of a counter: the names of policies may be as many as a caller makes. */
const mostSeries = 1_000;

/** In seconds: in memory a decision takes a microsecond, over a network milliseconds. */
const bounds = [0.000_01, 0.000_1, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** What listens to the channels. */
interface Listener {
  readonly onDecision: (message: DecisionMessage) => void;
  readonly onError: (message: ErrorMessage) => void;
}

/** Metrics that are made again and again, and dropped, must not all count on. */
const dropped =
  typeof FinalizationRegistry === "undefined"
    ? undefined
    : /* @__PURE__ */ new FinalizationRegistry<Listener>((listener) => unsubscribe(listener));

function unsubscribe({ onDecision, onError }: Listener): void {
  decisions?.unsubscribe(onDecision);
  errors?.unsubscribe(onError);
}

/** Returns a function that does not keep the metrics alive, which `weak` refers to. No closure here may use them. */
const listening =
  <Message>(weak: { deref(): Metrics | undefined }, listen: (metrics: Metrics, message: Message) => void) =>
  (message: Message): void => {
    const metrics = weak.deref();
    if (metrics) listen(metrics, message);
  };

/** Returns a weak reference, or a strong one where there are none. */
const referTo = (metrics: Metrics) =>
  typeof WeakRef === "undefined" ? { deref: () => metrics } : new WeakRef(metrics);

/** Counts the decisions of all limiters, in memory that is bounded whatever the keys and policies are. */
export class Metrics {
  readonly #limiters: Readonly<Record<string, CountingLimiter>>;
  readonly #topKeys: number;
  readonly #keyLabel: (key: Key) => string;
  readonly #denied: SpaceSaving;
  #denials = 0;
  readonly #decisions = new Counters(
    "tollgate_decisions",
    "Decisions, by the policy that binds most, the result and how the decision was made.",
    mostSeries,
  );
  readonly #errors = new Counters(
    "tollgate_errors",
    "Errors of limiters whose store failed, by what was done instead.",
    mostSeries,
  );
  readonly #durations = new Histograms(
    "tollgate_decision_duration_seconds",
    "How long decisions took, by where the keys are.",
    bounds,
  );
  #last: DecisionMessage | undefined;
  readonly #listener: Listener;

  constructor(options: MetricsOptions) {
    const read = copiedOptions(options, ["limiters", "topKeys", "keyLabel"]);
    checkFunctions(read, ["keyLabel"]);
    const { limiters = {}, topKeys = 10, keyLabel = String } = read;
    if (typeof limiters !== "object" || limiters === null || !Object.values(limiters).every(isObject))
      throw invalidField("invalid_option", "limiters", limiters, "limiters by their names: { api: limiter }");
    if (!isInteger(topKeys, 0, 1_000))
      throw invalidField("invalid_option", "topKeys", topKeys, integer(0, 1_000));
    this.#limiters = { ...limiters };
    this.#topKeys = topKeys;
    this.#keyLabel = keyLabel;
    this.#denied = new SpaceSaving(topKeys * countersForKey);
    const weak = referTo(this);
    this.#listener = {
      onDecision: listening(weak, Metrics.#takeMessage),
      onError: listening(weak, Metrics.#takeError),
    };
    decisions?.subscribe(this.#listener.onDecision);
    errors?.subscribe(this.#listener.onError);
    dropped?.register(this, this.#listener);
  }

  /** The option `onDecision` of a limiter where there is no `diagnostics_channel`; in Node it changes nothing. */
  readonly onDecision: OnDecision = (_, message) => this.#onMessage(message);

  /** Returns the metrics as OpenMetrics text. */
  text(): string {
    return `${this.#decisions.text()}${this.#durations.text()}${this.#errors.text()}${this.#topText()}${limitersText(this.#limiters)}# EOF\n`;
  }

  /** Returns them in the older text format of Prometheus, to append to the text of another library, such as prom-client. */
  prometheusText(): string {
    return prometheusText(this.text());
  }

  /** The media type of `text`. */
  readonly contentType = contentType;

  /** Returns the response, for handlers of fetch. */
  readonly fetch = (): FetchResponse => respond.fetch(this.text());

  /** The handler of a route in Hono. */
  readonly hono = (_context: unknown): FetchResponse => this.fetch();

  /** The handler of a route in Express, or of a request in Node's own server. */
  readonly express = (_request: unknown, response: NodeResponse): void => respond.node(this.text(), response);

  /** The handler of a route in Fastify. */
  readonly fastify = (_request: unknown, reply: Reply): unknown => respond.fastify(this.text(), reply);

  /** Middleware for Koa that responds to `/metrics`. */
  readonly koa = (
    context: { readonly path: string; type: string; body: unknown },
    next: () => Promise<unknown>,
  ): unknown => {
    if (context.path !== path) return next();
    context.type = contentType;
    context.body = this.text();
    return undefined;
  };

  /** Stops counting. */
  [Symbol.dispose](): void {
    unsubscribe(this.#listener);
  }

  static readonly #takeMessage = (metrics: Metrics, message: DecisionMessage) => metrics.#onMessage(message);
  static readonly #takeError = (metrics: Metrics, message: ErrorMessage) => metrics.#onError(message);

  readonly #onMessage = (message: DecisionMessage): void => {
    // In Node, a limiter with `onDecision` passes the same message by both ways.
    if (message === this.#last) return;
    this.#last = message;
    const { limiter, operation, decision, allowed, by, duration, key } = message;
    const result = allowed ? "allowed" : decision.allowed ? "withheld" : "denied";
    const rest = { limiter, operation, result, by };
    this.#decisions.add({ policy: `${decision.policy}`, ...rest }, { policy: "(other)", ...rest });
    this.#durations.add(limiter, duration / 1_000);
    if (result !== "denied" || this.#topKeys === 0) return;
    this.#denials += 1;
    this.#denied.add(this.#shown(key));
  };

  readonly #onError = ({ limiter, error, verdict }: ErrorMessage): void => {
    const { name, code } = (error ?? {}) as { readonly name?: unknown; readonly code?: unknown };
    const ours = name === "TollgateError" ? String(code) : "other";
    this.#errors.add({ code: ours, limiter, verdict }, { code: "other", limiter, verdict });
  };

  /** Returns how a key is shown. A function of the caller that throws must not break the hit. */
  #shown(key: Key): string {
    try {
      return labelValue(this.#keyLabel(key));
    } catch {
      return "(keyLabel failed)";
    }
  }

  #topText(): string {
    if (this.#topKeys === 0) return "";
    const top = this.#denied.top(this.#topKeys);
    let text = heading("tollgate_denied", "counter", "Denied hits of all keys.");
    text += sample("tollgate_denied_total", {}, this.#denials);
    text += heading(
      "tollgate_top_denied",
      "gauge",
      "Denied hits of the keys that were denied most, at most.",
    );
    for (const { key, count } of top) text += sample("tollgate_top_denied", { key }, count);
    text += heading("tollgate_top_denied_error", "gauge", "By how much the number of a key may be too high.");
    for (const { key, error } of top) text += sample("tollgate_top_denied_error", { key }, error);
    return text;
  }
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;
