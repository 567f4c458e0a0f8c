import type { Runner } from "./client.ts";

/** How many calls time out, without any reply between, before no more are sent. */
const mostTimeouts = 3;

/** The first and the longest pause between two probes, in milliseconds. */
const firstPause = 250;
const longestPause = 5_000;

/** A command that does nothing, on the node of a key. */
const probe = "return 1";

/** A timer. It does not keep the process alive. */
type Timer = ReturnType<typeof setTimeout> & { unref?(): unknown };

/**
 * Stops the calls of all limiters on a client when Redis does not reply, so that an outage does not cost each of them a
 * timeout, and probes Redis until it replies.
 */
export class Breaker {
  readonly #runner: Runner;
  #timeouts = 0;
  #timer: Timer | undefined;
  #isOpen = false;

  constructor(runner: Runner) {
    this.#runner = runner;
  }

  /** Why no call is sent; `undefined` if calls are. */
  get reason(): string | undefined {
    return this.#isOpen ? `the last ${mostTimeouts} calls have no reply` : undefined;
  }

  /** Notes that a call on a key timed out. */
  timedOut(key: string): void {
    this.#timeouts++;
    if (this.#isOpen || this.#timeouts < mostTimeouts) return;
    this.#isOpen = true;
    this.#probe(key, firstPause);
  }

  /** Notes that Redis replied to a call or a probe. */
  replied(): void {
    this.#timeouts = 0;
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearTimeout(this.#timer);
  }

  /** Probes Redis, and again after ever longer pauses. */
  #probe(key: string, pause: number): void {
    if (this.#runner.unavailable() === undefined) {
      // A client that throws has no connection.
      const sent = (async () => this.#runner.run(probe, [key], []))();
      sent.then(
        () => this.replied(),
        () => {},
      );
    }
    this.#timer = setTimeout(() => this.#probe(key, Math.min(2 * pause, longestPause)), pause) as Timer;
    this.#timer.unref?.();
  }
}

const byClient = new WeakMap<object, Breaker>();

/** Returns the breaker of a client: that of all limiters on it. */
export function breakerOf(client: object, runner: Runner): Breaker {
  let breaker = byClient.get(client);
  if (breaker === undefined) {
    breaker = new Breaker(runner);
    byClient.set(client, breaker);
  }
  return breaker;
}
