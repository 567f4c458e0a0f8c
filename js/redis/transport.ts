import type { Breaker } from "./breaker.ts";
import type { Call } from "./call.ts";
import type { Runner } from "./client.ts";
import { isCrossSlot, isNoScript } from "./errors.ts";
import { divided, type Message } from "./message.ts";
import type { Counters } from "./stats.ts";

/** How many calls may have timed out without a reply before new ones fail at once. */
const maxAbandoned = 256;

/** What is done with the end of a message, and with those of its calls that still wait for it, perhaps none. */
export interface Receiver {
  /** Reads a reply. */
  receive(message: Message, awaited: readonly Call[], reply: unknown): void;
  /** Takes note of an error instead of a reply. */
  fail(message: Message, awaited: readonly Call[], error: unknown): void;
  /** Sends calls again, in messages of one slot each. */
  divide(message: Message, awaited: readonly Call[]): void;
}

/** Transmits messages through the client, and keeps count of the calls that timed out without a reply. */
export class Transport {
  readonly #runner: Runner;
  readonly #breaker: Breaker;
  readonly #receiver: Receiver;
  readonly #timeout: number;
  readonly #counters: Counters;
  /** How many calls timed out and have no reply yet. */
  #abandoned = 0;
  /** When the last call was tried in spite of those. */
  #lastTryAt = Number.NEGATIVE_INFINITY;

  constructor(runner: Runner, breaker: Breaker, receiver: Receiver, timeout: number, counters: Counters) {
    this.#runner = runner;
    this.#breaker = breaker;
    this.#receiver = receiver;
    this.#timeout = timeout;
    this.#counters = counters;
  }

  /** Returns why no call can be sent now; `undefined` if one can. */
  unavailable(now: number): string | undefined {
    const { reason } = this.#breaker;
    if (reason !== undefined) return reason;
    if (this.#abandoned >= maxAbandoned && now - this.#lastTryAt < this.#timeout)
      return `${this.#abandoned} earlier calls have no reply`;
    this.#lastTryAt = now;
    return this.#runner.unavailable();
  }

  /** Calls `send` with the calls of each message. */
  eachMessage(calls: readonly Call[], send: (calls: readonly Call[]) => void): void {
    const messages = divided(calls, this.#runner.isCluster);
    if (messages.length === 1) {
      send(calls);
      return;
    }
    // Corked, so that all messages take one system call instead of one each.
    const sockets = this.#runner.sockets();
    for (const socket of sockets) socket.cork();
    for (const message of messages) send(message);
    for (const socket of sockets) socket.uncork();
  }

  /** Transmits a message. Throws if the client does. */
  transmit(message: Message, args: readonly string[]): void {
    this.#counters.calls++;
    this.#await(this.#runner.bySha(message.keys, args), message, args);
  }

  /** Takes note that a call on a key timed out. */
  abandon(key: string): void {
    this.#abandoned++;
    this.#breaker.timedOut(key);
  }

  #await(reply: Promise<unknown>, message: Message, args: readonly string[]): void {
    reply.then(
      (reply) => {
        this.#breaker.replied();
        this.#receiver.receive(message, this.#awaited(message), reply);
      },
      (error) => {
        const awaited = this.#awaited(message);
        if (isNoScript(error) && !message.isByText && awaited.length > 0) this.#load(message, args, awaited);
        else if (isCrossSlot(error) && message.calls.length > 1) {
          this.#runner.isCluster = true;
          this.#receiver.divide(message, awaited);
        } else this.#receiver.fail(message, awaited, error);
      },
    );
  }

  /** Transmits a message again with the text of the script, which Redis does not have. */
  #load(message: Message, args: readonly string[], awaited: readonly Call[]): void {
    this.#counters.scriptLoads++;
    message.isByText = true;
    // Those that timed out wait for a reply again.
    this.#abandoned += message.calls.length - awaited.length;
    this.#await(this.#runner.byText(message.keys, args), message, args);
  }

  /** Returns the calls of a message that still wait for its reply. */
  #awaited({ calls }: Message): readonly Call[] {
    for (const { isEnded } of calls) {
      if (!isEnded) continue;
      const awaited = calls.filter(({ isEnded }) => !isEnded);
      this.#abandoned -= calls.length - awaited.length;
      return awaited;
    }
    return calls;
  }
}
