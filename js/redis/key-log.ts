import { RedisClock } from "./clock.ts";
import type { Operation } from "./operation.ts";

/** What a caller sends that has replayed nothing: a mark and the end of a line's beginning that no value contains. */
const nothingKnown = " ".repeat(13);

/** The length of a mark: `!` and a tag. */
const markLength = 10;

/** The log of one key in Redis, as far as this limiter has read it, and the operations that wait to be sent. */
export class KeyLog {
  /** The key in Redis. */
  readonly name: string;
  /** The slot of its states in the wasm. */
  readonly slot: number;
  readonly clock: RedisClock = new RedisClock();
  /** The mark of the last replayed entry; empty if none was replayed. */
  mark = "";
  /** The time at which its line began, as its value has it. */
  #line = "";
  /** What of it calls send. */
  #endOfLine = "";
  /** The key does not expire in Redis before this time, by Redis's clock. */
  livesUntil = 0;
  /** Set by each use; eviction skips the key once and clears it. */
  isUsed = true;
  /** Operations that wait for the next call. */
  readonly pending: Operation[] = [];
  /** Until when this process may spend a lease of the key, by the holder's clock; 0 if it has none. */
  leasedUntil = 0;
  /** How many freeing operations wait or are in flight. No hit is denied locally meanwhile. */
  freeing = 0;
  /** Whether a call is scheduled or in flight. */
  isBusy = false;
  /** Whether the value could not be read. Calls then write nothing until one has read it. */
  isUnreadable = false;
  /** Whether its slot was released or lost. */
  isDropped = false;
  /** Whether the value is long enough for a base with the next call. */
  isLong = false;
  /** Whether it is so long that a call is made for that alone. */
  isTooLong = false;

  constructor(name: string, slot: number) {
    this.name = name;
    this.slot = slot;
  }

  /** What is known, as calls send it. */
  get known(): string {
    return this.mark === "" ? nothingKnown : this.mark + this.#endOfLine;
  }

  /** Updates what is known after entries or a whole value were replayed. `ownMark` is that of the call's entries. */
  update(isWhole: boolean, text: string, ownMark: string): void {
    if (isWhole) {
      this.mark = "";
      const line = text.slice(1, 8);
      if (line !== this.#line) {
        // The key was created anew since its time to live was set.
        this.livesUntil = 0;
        this.#line = copied(line);
        this.#endOfLine = this.#line.slice(4);
      }
    }
    if (text === "") return;
    // Copied, since a slice would keep the whole reply in memory.
    this.mark = text.endsWith(ownMark) ? ownMark : copied(text.slice(-markLength));
  }

  /** Forgets what is known, so that the next call reads the whole value. */
  forget(): void {
    this.mark = this.#line = this.#endOfLine = "";
    this.livesUntil = 0;
    this.isLong = this.isTooLong = false;
  }
}

const copied = (text: string): string => Buffer.from(text, "latin1").toString("latin1");
