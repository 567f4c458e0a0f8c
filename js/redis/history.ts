import type { DecisionMessage } from "../events/messages.ts";
import type { Runner } from "./client.ts";

/** How long denials are gathered before they are written, in milliseconds. */
const gathering = 1_000;

/** How many keys are written at most in that time. Denials of others are left out, so that a flood costs no more. */
const maxKeys = 100;

/** How long the denials of a key are kept after the last, in milliseconds. */
const ttl = 86_400_000;

/** Adds one item to a capped list, with its time by Redis's clock. */
const appended = `local now = redis.call('TIME')
local at = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) - ARGV[3])
redis.call('LPUSH', KEYS[1], '{"at":' .. at .. ARGV[4])
redis.call('LTRIM', KEYS[1], 0, ARGV[1] - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`;

type Timer = ReturnType<typeof setTimeout> & { unref?(): unknown };

/** The denials of a key since the last writing, of which the last is told. */
interface Gathered {
  readonly message: DecisionMessage;
  readonly times: number;
  /** By the local clock. */
  readonly at: number;
}

/** Writes the last denials of each key to a capped list in Redis: at most once a second, many of one key as one item. */
export class History {
  readonly #runner: Runner;
  readonly #prefix: string;
  readonly #length: number;
  #gathered = new Map<string, Gathered>();
  #timer: Timer | undefined;
  #flushedAt = Number.NEGATIVE_INFINITY;

  /** `prefix` is that of the lists. */
  constructor(runner: Runner, prefix: string, length: number) {
    this.#runner = runner;
    this.#prefix = prefix;
    this.#length = length;
  }

  /** Adds the decision of a message, if it is a denial that Redis knows of. */
  add(message: DecisionMessage): void {
    if (message.decision.allowed || message.by === "onError" || message.by === "fallback") return;
    const key = message.key as string;
    const before = this.#gathered.get(key);
    if (before === undefined && this.#gathered.size >= maxKeys) return;
    const at = performance.now();
    this.#gathered.set(key, { message, times: (before?.times ?? 0) + 1, at });
    if (this.#timer !== undefined) return;
    const wait = this.#flushedAt + gathering - at;
    // At once after a time without denials: the client may quit before the limiter is disposed of.
    if (wait <= 0) {
      this.flush();
      return;
    }
    this.#timer = setTimeout(() => this.flush(), wait) as Timer;
    // What was not written keeps no process alive.
    this.#timer.unref?.();
  }

  /** Writes what was gathered. What cannot be written is lost. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushedAt = performance.now();
    const gathered = this.#gathered;
    this.#gathered = new Map();
    if (this.#runner.unavailable() !== undefined) return;
    for (const [key, { message, times, at }] of gathered) {
      const ago = Math.max(0, Math.round(performance.now() - at));
      const args = [`${this.#length}`, `${ttl}`, `${ago}`, itemOf(message, times)];
      this.#runner.run(appended, [this.#prefix + key], args).catch(() => {});
    }
  }
}

/** Returns an item as JSON, without its beginning, which is the time. */
function itemOf({ decision, operation, cost }: DecisionMessage, times: number): string {
  const { policy, violated, count, limit, retryAfter, reason } = decision;
  const item = {
    times,
    operation,
    policy,
    // More than the one that it names may have denied.
    ...(violated.length > 1 ? { violated } : {}),
    count,
    limit,
    cost,
    retryAfter: Number.isFinite(retryAfter) ? retryAfter : null,
    ...(reason === undefined ? {} : { reason }),
  };
  return `,${JSON.stringify(item).slice(1)}`;
}
