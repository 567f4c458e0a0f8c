import { RedisClock } from "./clock.ts";
import type { Operation } from "./operation.ts";
import type { Reply } from "./reply.ts";

/** What a limiter knows of one key's log in Redis. */
export class KeyLog {
  /** The key in Redis. */
  readonly name: string;
  /** Where its states are in the wasm. */
  readonly slot: number;
  readonly clock: RedisClock = new RedisClock();
  /** The mark of the last entry that was replayed; empty if nothing is known. */
  mark = "";
  /** Where that mark ends in the value. */
  offset = 0;
  /** Until when the key lives in Redis at the least, by its clock. */
  livesUntil = 0;
  /** Over how many more calls the text of the policies is sent along, because others write under other policies. */
  mixed = 0;
  /** Set by each use; the eviction looks for keys without it. */
  isUsed = true;
  readonly waiting: Operation[] = [];
  /** Operations that go with the next call, and send none by themselves. */
  readonly later: Operation[] = [];
  /** Until when a lease of the key may be spent here, by the local clock. */
  leasedUntil = 0;
  /** How many operations wait or are under way after which a denied hit may be allowed. */
  relaxing = 0;
  /** Whether a call is to be sent in this tick, or is under way. */
  isBusy = false;
  /** Set when the value could not be read: the next call only reads, until one can. */
  isSuspect = false;
  /** Set when its slot is gone. */
  isDropped = false;
  #baseLength = 0;
  /** How much others write between two entries of ours. */
  #gap = 0;

  constructor(name: string, slot: number) {
    this.name = name;
    this.slot = slot;
  }

  /** Notes what a reply shows, whose entries were replayed. `own` is the mark of the own entry, `length` that entry's. */
  follow(reply: Reply, own: string, length: number): void {
    const { kind, at, text } = reply;
    if (kind === "=") {
      this.offset = text.length;
      this.#baseLength = text[1] === "b" ? text.indexOf("!") : 0;
    } else {
      if (kind === "#") this.#baseLength = this.offset = at;
      this.offset += text.length;
      this.#gap = Math.max(0, text.length - length);
    }
    if (text === "") {
      if (kind === "=") this.mark = "";
      return;
    }
    // A slice would keep the whole reply in memory.
    this.mark = own !== "" && text.endsWith(own) ? own : copied(text.slice(text.lastIndexOf("!")));
  }

  /** Forgets the log, as if nothing had ever been read of it. */
  forget(): void {
    this.mark = "";
    this.offset = this.#baseLength = this.livesUntil = 0;
  }

  /** Returns how many times longer the value is than it needs to be before a shorter one is proposed. */
  get excess(): number {
    return this.offset / (512 + 2 * this.#baseLength + 4 * this.#gap);
  }
}

const copied = (text: string): string => Buffer.from(text, "latin1").toString("latin1");
