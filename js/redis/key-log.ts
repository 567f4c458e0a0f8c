import { RedisClock } from "./clock.ts";
import type { Operation } from "./operation.ts";
import type { Reply } from "./reply.ts";

/** The log of one key in Redis, as far as this limiter has read it, and the operations that wait to be sent. */
export class KeyLog {
  /** The key in Redis. */
  readonly name: string;
  /** The slot of its states in the wasm. */
  readonly slot: number;
  readonly clock: RedisClock = new RedisClock();
  /** The mark of the last replayed entry; empty if none was replayed. */
  mark = "";
  /** The end of that mark in the value. */
  offset = 0;
  /** The key does not expire in Redis before this time, by Redis's clock. */
  livesUntil = 0;
  /** How many more calls send the text of the policies, because other processes write under other policies. */
  callsWithPolicies = 0;
  /** Set by each use; eviction skips the key once and clears it. */
  isUsed = true;
  /** Operations that wait for the next call. */
  readonly pending: Operation[] = [];
  /** Operations that are sent with the next call but do not cause one. */
  readonly deferred: Operation[] = [];
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
  #baseLength = 0;
  /** The length of what other processes wrote between the last two entries of this one. */
  #gap = 0;

  constructor(name: string, slot: number) {
    this.name = name;
    this.slot = slot;
  }

  /** Updates mark and offset after a reply was replayed. `ownMark` and `ownLength` are those of the own entry. */
  update(reply: Reply, ownMark: string, ownLength: number): void {
    const { kind, offset, text } = reply;
    if (kind === "=") {
      this.offset = text.length;
      this.#baseLength = text[1] === "b" ? text.indexOf("!") : 0;
    } else {
      if (kind === "#") this.#baseLength = this.offset = offset;
      this.offset += text.length;
      this.#gap = Math.max(0, text.length - ownLength);
    }
    if (text === "") {
      if (kind === "=") this.mark = "";
      return;
    }
    // Copied, since a slice would keep the whole reply in memory.
    this.mark =
      ownMark !== "" && text.endsWith(ownMark) ? ownMark : copied(text.slice(text.lastIndexOf("!")));
  }

  /** Resets mark and offset, so that the next call reads the whole value. */
  forget(): void {
    this.mark = "";
    this.offset = this.#baseLength = this.livesUntil = 0;
  }

  /** The length of the value divided by the length from which on a shorter one is proposed. */
  get excess(): number {
    return this.offset / (512 + 2 * this.#baseLength + 4 * this.#gap);
  }
}

const copied = (text: string): string => Buffer.from(text, "latin1").toString("latin1");
