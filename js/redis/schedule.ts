import type { KeyLog } from "./key-log.ts";
import { maxKeys } from "./message.ts";

/** Decides when the keys that have operations to send are sent, so that many go in one message. */
export class Schedule {
  readonly #send: (logs: readonly KeyLog[]) => void;
  #ready: KeyLog[] = [];
  #isScheduled = false;
  /** The timer of keys that wait for a reply to others. */
  #waiting: ReturnType<typeof setTimeout> | undefined;
  /** How many keys the messages have that have no reply yet. */
  #underWay = 0;
  /** How long a reply takes, in milliseconds: an average of the last ones. */
  #roundTrip = 1;

  /** `send` sends the keys that are ready. */
  constructor(send: (logs: readonly KeyLog[]) => void) {
    this.#send = send;
  }

  /** Whether no key is ready. */
  get isEmpty(): boolean {
    return this.#ready.length === 0;
  }

  add(log: KeyLog): void {
    if (this.#ready.push(log) === 1) this.#schedule();
  }

  /** Notes that a message with so many keys was sent. */
  sent(keys: number): void {
    this.#underWay += keys;
  }

  /** Notes that a message with so many keys has its reply, after so long. */
  received(keys: number, duration: number): void {
    this.failed(keys);
    this.#roundTrip += (duration - this.#roundTrip) / 8;
  }

  /** Notes that a message with so many keys will have no reply. */
  failed(keys: number): void {
    this.#underWay -= keys;
    if (this.#ready.length > 0) this.#schedule();
  }

  /**
   * Sends what is ready once the running callback has ended; while keys are under way, once all callbacks of this turn of
   * the event loop have, since those may add more.
   */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    if (this.#underWay === 0) process.nextTick(this.#flush);
    else setImmediate(this.#flush);
  }

  /**
   * Sends what is ready. While more than twice as many keys are under way, these wait for the next reply, for half a round
   * trip at most: otherwise a busy process would send ever smaller messages.
   */
  readonly #flush = (): void => {
    this.#isScheduled = false;
    const { length } = this.#ready;
    if (length === 0) return;
    if (2 * length < this.#underWay && length < maxKeys) {
      // In a process that was blocked, timers fire before the replies that have arrived are read. Those come first.
      this.#waiting ??= setTimeout(() => setImmediate(this.#flushNow), this.#roundTrip / 2);
    } else this.#flushNow();
  };

  readonly #flushNow = (): void => {
    if (this.#waiting !== undefined) {
      clearTimeout(this.#waiting);
      this.#waiting = undefined;
    }
    const ready = this.#ready;
    if (ready.length === 0) return;
    this.#ready = [];
    this.#send(ready);
  };
}
