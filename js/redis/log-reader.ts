import { replay } from "../wasm/generated.ts";
import type { Base, Call, Next } from "./call.ts";
import { unanswered, unreadableValue } from "./errors.ts";
import type { KeyLog } from "./key-log.ts";
import type { Outcome, Replicas } from "./replicas.ts";
import type { Counters } from "./stats.ts";
import type { Tags } from "./tags.ts";

/** Reads the replies for keys by their kinds, which `log.lua` explains. */
export class LogReader {
  readonly #replicas: Replicas;
  readonly #tags: Tags;
  readonly #isRestoring: boolean;
  readonly #counters: Counters;

  /** With `isRestoring` keys that Redis lost are written back. */
  constructor(replicas: Replicas, tags: Tags, isRestoring: boolean, counters: Counters) {
    this.#replicas = replicas;
    this.#tags = tags;
    this.#isRestoring = isRestoring;
    this.#counters = counters;
  }

  /** Reads the reply for a key after it was replayed. Returns what is to be done with the call; throws if it fails. */
  read(call: Call, reply: string, outcome: Outcome, tag: string, now: number): Next {
    const { log } = call;
    const first = reply.charAt(0);
    const wish = first === "*" || first === "!" ? first : "";
    const kind = wish === "" ? first : reply.charAt(1);
    const text = reply.slice(wish.length + 1);
    switch (kind) {
      case "+":
      case "#":
      case "=":
      case "^":
        this.#checkRead(call, outcome.status, text);
        this.#update(call, kind, text, tag);
        log.isLong = wish !== "";
        log.isTooLong = wish === "!";
        return this.#replayed(call, outcome, now);
      case "x":
        return this.#restore(call, now);
      case "o":
        return this.#meet(call, text, now);
      case "l":
        this.#checkRead(call, outcome.status, text);
        log.update(true, text, "!");
        call.base = { kind: "b", text: this.#replicas.base(log.slot), mark: "" };
        return "again";
      default:
        this.#checkRead(call, replay.status.malformed, text);
        return "again";
    }
  }

  /** Throws if a value or entries could not be read. */
  #checkRead({ log }: Call, status: number, text: string): void {
    if (status >= 0) return;
    log.forget();
    log.isUnreadable = true;
    this.#replicas.forget(log.slot);
    const isOther = /^[ac-z][I-M]/.test(text);
    throw unreadableValue(log.name, isOther ? replay.status.version : status, text.slice(0, 64));
  }

  /** Updates what is known of a key after a replay. */
  #update(call: Call, kind: string, text: string, tag: string): void {
    const { log, base } = call;
    log.update(kind === "=" || kind === "^", text, `!${tag}`);
    if (base === undefined) return;
    if (kind === "#") {
      this.#counters.bases++;
      if (text === "" && base.mark !== "") log.mark = base.mark;
    }
    if (base.kind === "n" && text.includes(base.mark)) this.#counters.bases++;
    if (kind === "^") this.#counters.restored++;
    call.base = undefined;
  }

  /** Ends an executed call once its key lives long enough, and otherwise sends it again. */
  #replayed(call: Call, outcome: Outcome, now: number): Next {
    const { log } = call;
    if (log.isUnreadable) {
      log.isUnreadable = false;
      return "again";
    }
    if (call.ttl > 0) log.livesUntil = Math.max(log.livesUntil, now + call.ttl);
    if (call.results === undefined) this.#readResults(call, outcome, now);
    if (call.batch.writes.length === 0 || call.endsAt <= log.livesUntil) return "settle";
    // Without a longer time to live, Redis would drop states before they end.
    call.ttl = 2 * (call.endsAt - now);
    return "again";
  }

  /** Reads the results of a call whose entry was replayed. */
  #readResults(call: Call, outcome: Outcome, now: number): void {
    const replicas = this.#replicas;
    const { log } = call;
    const { writes, reads } = call.batch;
    if (writes.length > 0 && (outcome.status & replay.status.own) === 0)
      throw unanswered(log.name, "the operation was counted, but its result is no longer in the log");
    const results = replicas.results(writes, outcome.first);
    if (reads.length > 0) {
      for (const operation of reads) {
        const code = replicas.read(log.slot, operation, now);
        if (code < 0) throw unreadableValue(log.name, code);
      }
      results.push(...replicas.results(reads));
    }
    call.results = results;
    call.endsAt = outcome.endsAt;
  }

  /** Sends a call again whose key Redis has lost, with a base that restores the key unless its states have ended. */
  #restore(call: Call, now: number): Next {
    const replicas = this.#replicas;
    const { log } = call;
    if (this.#isRestoring && replicas.endsAt(log.slot, now) > 0) {
      call.base = this.#markedBase("r", replicas.restoringBase(log.slot));
    } else {
      replicas.forget(log.slot);
      log.forget();
      call.base = undefined;
    }
    return "again";
  }

  /** Sends a call again whose key was lost and has other states, with a base that adds to those what only the own ones know. */
  #meet(call: Call, value: string, now: number): Next {
    const replicas = this.#replicas;
    const { log } = call;
    if (!this.#isRestoring) replicas.forget(log.slot);
    const status = replicas.meet(log.slot, value, now);
    this.#checkRead(call, status, value);
    log.update(true, value, "!");
    const isKept = status === replay.status.kept;
    call.base = isKept ? this.#markedBase("m", replicas.base(log.slot)) : undefined;
    return "again";
  }

  /** Returns the base that shortens a long log. */
  shortened({ slot, isTooLong }: KeyLog): Base {
    const replicas = this.#replicas;
    // It is not taken where other entries follow.
    const renewed = isTooLong ? "" : replicas.newBeginning(slot);
    return renewed === ""
      ? { kind: "b", text: replicas.base(slot), mark: "" }
      : this.#markedBase("n", renewed);
  }

  #markedBase(kind: "n" | "m" | "r", text: string): Base {
    const mark = `!${this.#tags.next()}`;
    return { kind, text: text + mark, mark };
  }
}
