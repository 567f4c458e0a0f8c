import { inWords, type TollgateError } from "../errors/error.ts";
import { replay } from "../wasm/generated.ts";
import { Call, type Next } from "./call.ts";
import type { Runner } from "./client.ts";
import { RedisClock } from "./clock.ts";
import { Deadlines } from "./deadlines.ts";
import {
  isCrossSlot,
  isNoScript,
  rejectedOperation,
  stateLost,
  unanswered,
  unreadableValue,
} from "./errors.ts";
import type { KeyLog } from "./key-log.ts";
import { divided, Message, maxKeys } from "./message.ts";
import { type Operation, takeBatch } from "./operation.ts";
import type { Outcome, Replicas, Result } from "./replicas.ts";
import { type Reply, readReply } from "./reply.ts";
import type { Counters } from "./stats.ts";
import { Tags } from "./tags.ts";

/** How many times a call is sent at most. */
const maxSends = 8;

/** How many calls may have timed out without a reply before new ones fail at once. */
const maxAbandoned = 256;

/** The parts of an exchange. */
export interface ExchangeParts {
  readonly runner: Runner;
  readonly replicas: Replicas;
  readonly timeout: number;
  readonly restore: boolean;
  readonly counters: Counters;
}

/** Sends the pending operations of the keys, one call at a time for a key, and replays the replies. */
export class Exchange {
  readonly #parts: ExchangeParts;
  /** The text of the policies, as calls send it. */
  readonly #policies: string;
  readonly #tags = new Tags();
  readonly #deadlines = new Deadlines<Call>((call) => this.#timeOut(call));
  readonly #clock = new RedisClock();
  /** The keys whose calls are sent at the end of this tick. */
  readonly #ready: KeyLog[] = [];
  #isScheduled = false;
  /** The timer of keys that wait for a reply to others. */
  #waiting: ReturnType<typeof setTimeout> | undefined;
  /** How many keys the messages have that have no reply yet. */
  #keysUnderWay = 0;
  /** How long a reply takes, in milliseconds: an average of the last ones. */
  #roundTrip = 1;
  /** How many calls timed out and have no reply yet. */
  #abandoned = 0;
  /** When the last call was tried in spite of those. */
  #lastTryAt = Number.NEGATIVE_INFINITY;
  /** Called once no operation is under way. */
  #onIdle: (() => void) | undefined;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
    this.#policies = `${parts.replicas.policiesText}|`;
  }

  /** Adds an operation on a key. It is sent with all others of this tick. */
  add(log: KeyLog, operation: Operation): void {
    log.pending.push(operation);
    if (operation.isFreeing) log.freeing++;
    if (!log.isBusy) this.#enqueue(log);
  }

  /** Adds an operation that is sent with the next call for its key, if there is one. */
  addDeferred(log: KeyLog, operation: Operation): void {
    log.deferred.push(operation);
    log.freeing++;
  }

  /** Calls `work` once no operation is under way: they all end by their timeouts. */
  whenIdle(work: () => void): void {
    if (this.#isIdle) work();
    else this.#onIdle = work;
  }

  get #isIdle(): boolean {
    return this.#deadlines.isEmpty && this.#ready.length === 0;
  }

  #enqueue(log: KeyLog): void {
    log.isBusy = true;
    if (this.#ready.push(log) === 1) this.#schedule();
  }

  /** Sends what is ready at the end of this tick. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#flush);
  }

  /**
   * Sends the calls of all keys that are ready. While more than twice as many are under way, these wait for the next reply,
   * for half a round trip at most: otherwise a busy process would send ever smaller messages.
   */
  readonly #flush = (): void => {
    this.#isScheduled = false;
    if (this.#ready.length === 0) return;
    if (2 * this.#ready.length < Math.min(this.#keysUnderWay, 2 * maxKeys)) {
      // In a process that was blocked, timers fire before the replies that have arrived are read. Those come first.
      this.#waiting ??= setTimeout(() => setImmediate(this.#flushNow), this.#roundTrip / 2);
      return;
    }
    this.#flushNow();
  };

  readonly #flushNow = (): void => {
    clearTimeout(this.#waiting);
    this.#waiting = undefined;
    if (this.#ready.length > 0) this.#sendAll(this.#ready.splice(0).map((log) => this.#start(log)));
  };

  /** Starts a call with the pending operations of a key. */
  #start(log: KeyLog): Call {
    const oldest = log.pending[0]?.since ?? performance.now();
    if (log.deferred.length > 0) log.pending.unshift(...log.deferred.splice(0));
    const batch = takeBatch(log.pending);
    const call = new Call(log, batch, oldest + this.#parts.timeout);
    this.#parts.counters.operations += batch.writes.length;
    this.#deadlines.add(call);
    return call;
  }

  #sendAll(calls: readonly Call[]): void {
    const { runner } = this.#parts;
    const messages = divided(calls, runner.isCluster);
    if (messages.length === 1) {
      this.#send(messages[0] as Call[]);
      return;
    }
    // Corked, so that all messages take one system call instead of one each.
    const sockets = runner.sockets();
    for (const socket of sockets) socket.cork();
    for (const message of messages) this.#send(message);
    for (const socket of sockets) socket.uncork();
  }

  /** Sends calls in one message, with what is known of their keys now. */
  #send(all: readonly Call[]): void {
    const now = performance.now();
    const unavailable = this.#unavailable(now);
    const calls = all.filter((call) => {
      const { log } = call;
      let reason = unavailable;
      if (reason === undefined && ++call.sends > maxSends) reason = "the call was sent too many times";
      if (this.#isLost(log)) this.#fail(call, stateLost());
      else if (reason !== undefined) this.#fail(call, unanswered(log.name, reason));
      return !call.isEnded;
    });
    if (calls.length === 0) return;
    const message = new Message(calls, this.#tags.next(), now);
    try {
      const latest = (calls[0] as Call).log.clock.latest(now) || this.#clock.latest(now);
      let earliest = Number.POSITIVE_INFINITY;
      for (const call of calls) {
        earliest = Math.min(earliest, call.deadline);
        this.#prepare(call, latest);
      }
      // Before the first reply Redis's time is unknown. A deadline of 0 makes the script return only the time.
      const deadline = latest === 0 ? 0 : Math.ceil(latest + earliest - now);
      this.#parts.counters.calls++;
      this.#transmit(message, message.args(deadline, this.#policies, this.#ttlFor(0)), false);
    } catch (error) {
      for (const call of calls) this.#fail(call, error);
    }
  }

  /** Returns whether a trap has ended the states of a key. */
  #isLost(log: KeyLog): boolean {
    return log.isDropped || this.#parts.replicas.isLost;
  }

  /** Adds to a call what its key needs: a base, or a longer time to live. */
  #prepare(call: Call, latest: number): void {
    const { replicas } = this.#parts;
    const { log, batch } = call;
    if (log.isLong && call.base === undefined && log.mark !== "")
      call.base = { kind: "b", text: replicas.base(log.slot, !log.isShared), mark: "" };
    if (call.ttl > 0 || batch.writes.length === 0 || log.isUnreadable) return;
    // A reservation is charged when it expires, and the charge lasts as long as any other.
    let longest = 0;
    for (const { ttl } of batch.writes) if (ttl > longest) longest = ttl;
    if (latest + replicas.longest + longest > log.livesUntil) call.ttl = this.#ttlFor(longest);
  }

  /** Returns the time to live of a key whose states last so much longer than they do after a hit. */
  #ttlFor(longer: number): number {
    return Math.max(2 * (this.#parts.replicas.longest + longer), 2 * this.#parts.timeout + 1_000);
  }

  #transmit(message: Message, args: readonly string[], byText: boolean): void {
    const { runner, counters } = this.#parts;
    const { keys } = message;
    const reply = byText ? runner.byText(keys, args) : runner.bySha(keys, args);
    this.#keysUnderWay += keys.length;
    const ended = () => {
      this.#keysUnderWay -= keys.length;
      if (this.#ready.length > 0) this.#schedule();
    };
    reply.then(
      (reply) => {
        ended();
        this.#receive(message, reply);
      },
      (error) => {
        ended();
        const calls = this.#awaited(message);
        if (!byText && isNoScript(error) && calls.length > 0) {
          counters.scriptLoads++;
          // Those that timed out wait for a reply again.
          this.#abandoned += keys.length - calls.length;
          this.#transmit(message, args, true);
        } else if (isCrossSlot(error) && keys.length > 1) {
          runner.isCluster = true;
          this.#sendAll(calls);
        } else {
          const reason = String((error as Error | null)?.message ?? error);
          for (const call of calls) this.#fail(call, unanswered(call.log.name, reason, error));
        }
      },
    );
  }

  /** Returns why no call can be sent now; `undefined` if one can. */
  #unavailable(now: number): string | undefined {
    if (this.#abandoned >= maxAbandoned && now - this.#lastTryAt < this.#parts.timeout)
      return `${this.#abandoned} earlier calls have no reply`;
    this.#lastTryAt = now;
    return this.#parts.runner.unavailable();
  }

  /** Returns the calls of a message that still wait for its reply. */
  #awaited({ calls }: Message): readonly Call[] {
    if (!calls.some(({ isEnded }) => isEnded)) return calls;
    const awaited = calls.filter(({ isEnded }) => !isEnded);
    this.#abandoned -= calls.length - awaited.length;
    return awaited;
  }

  #receive(message: Message, raw: unknown): void {
    const awaited = this.#awaited(message);
    if (awaited.length === 0) return;
    try {
      const reply = readReply(raw, message.calls.length);
      if (reply === undefined)
        throw unanswered(message.calls[0]?.log.name as string, `the reply of the script is ${inWords(raw)}`);
      const now = performance.now();
      this.#roundTrip += (now - message.sentAt - this.#roundTrip) / 8;
      for (const { log } of awaited) log.clock.update(reply.now, message.sentAt, now);
      this.#clock.update(reply.now, message.sentAt, now);
      if (reply.texts.length === 0) this.#sendLater(awaited, now);
      else this.#handleAll(message, reply);
    } catch (error) {
      for (const call of awaited) if (!call.isEnded) this.#fail(call, error);
    }
  }

  /** Sends calls again that came too late by the last estimate of Redis's time, unless they really are. */
  #sendLater(calls: readonly Call[], now: number): void {
    const [late, early] = [
      calls.filter(({ deadline }) => deadline <= now),
      calls.filter((call) => call.deadline > now),
    ];
    for (const call of late) this.#fail(call, this.#timeoutError(call.log));
    if (early.length > 0) this.#sendAll(early);
  }

  /** Replays the replies for all keys of a message, and ends or repeats their calls. */
  #handleAll(message: Message, { texts, now }: Reply): void {
    const { calls, tag } = message;
    const slots = new Uint32Array(calls.length);
    let index = 0;
    for (const { isEnded, log } of calls)
      slots[index++] = isEnded || log.isDropped ? replay.noSlot : log.slot;
    const outcomes = this.#parts.replicas.replayAll(slots, texts, tag, now);
    index = 0;
    for (const call of calls) {
      const [text, outcome] = [texts[index] as string, outcomes?.[index] as Outcome];
      index++;
      if (call.isEnded) continue;
      try {
        if (this.#isLost(call.log)) throw stateLost();
        if (outcomes === undefined) throw unreadableValue(call.log.name, replay.status.outOfMemory);
        call.next = this.#read(call, text, outcome, tag, now);
      } catch (error) {
        call.next = "fail";
        call.error = error;
      }
    }
    // Last, since they call what callers gave, which may use the wasm again.
    const again: Call[] = [];
    for (const call of calls) {
      if (call.isEnded) continue;
      if (call.next === "settle") this.#settle(call);
      else if (call.next === "again") again.push(call);
      else this.#fail(call, call.error);
    }
    if (again.length > 0) this.#sendAll(again);
  }

  /** Reads the reply for a key by its kind, which `log.lua` explains. Returns what is to be done then. */
  #read(call: Call, reply: string, outcome: Outcome, tag: string, now: number): Next {
    const { log } = call;
    const wish = reply.startsWith("*") || reply.startsWith("!") ? reply.charAt(0) : "";
    const kind = reply.charAt(wish.length);
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
        call.base = { kind: "b", text: this.#parts.replicas.base(log.slot, true), mark: "" };
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
    this.#parts.replicas.forget(log.slot);
    const isLater = /^[b-z][I-M]/.test(text);
    throw unreadableValue(log.name, isLater ? replay.status.version : status, text.slice(0, 64));
  }

  /** Updates what is known of a key after a replay. */
  #update(call: Call, kind: string, text: string, tag: string): void {
    const { log, base } = call;
    const { counters } = this.#parts;
    log.update(kind === "=" || kind === "^", text, `!${tag}`);
    if (base === undefined) return;
    if (kind === "#") {
      counters.bases++;
      if (text === "" && base.mark !== "") log.mark = base.mark;
    }
    if (kind === "^") counters.restored++;
    call.base = undefined;
  }

  /** Ends an executed call once its key lives long enough, and otherwise sends it again. */
  #replayed(call: Call, outcome: Outcome, now: number): Next {
    const { log, batch } = call;
    if (log.isUnreadable) {
      log.isUnreadable = false;
      return "again";
    }
    if (call.ttl > 0) log.livesUntil = Math.max(log.livesUntil, now + call.ttl);
    if (call.results === undefined) this.#readResults(call, outcome, now);
    if (batch.writes.length === 0 || call.endsAt <= log.livesUntil) return "settle";
    // Without a longer time to live, Redis would drop states before they end.
    call.ttl = 2 * (call.endsAt - now);
    return "again";
  }

  /** Reads the results of a call whose entry was replayed. */
  #readResults(call: Call, outcome: Outcome, now: number): void {
    const { replicas } = this.#parts;
    const { log, batch } = call;
    const { writes, reads } = batch;
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
    const { replicas, restore } = this.#parts;
    const { log } = call;
    if (restore && replicas.endsAt(log.slot, now) > 0) {
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
    const { replicas, restore } = this.#parts;
    const { log } = call;
    if (!restore) replicas.forget(log.slot);
    const status = replicas.meet(log.slot, value, now);
    this.#checkRead(call, status, value);
    log.update(true, value, "!");
    const isKept = status === replay.status.kept;
    call.base = isKept ? this.#markedBase("m", replicas.base(log.slot, false)) : undefined;
    return "again";
  }

  #markedBase(kind: "m" | "r", text: string): { kind: "m" | "r"; text: string; mark: string } {
    const mark = `!${this.#tags.next()}`;
    return { kind, text: text + mark, mark };
  }

  #settle(call: Call): void {
    const { writes, reads } = call.batch;
    const results = call.results as readonly Result[];
    let index = 0;
    for (const operations of [writes, reads]) {
      for (const operation of operations) {
        const result = results[index++];
        if (result === undefined) operation.reject(rejectedOperation());
        else operation.resolve(result);
      }
    }
    this.#end(call);
  }

  #timeOut(call: Call): void {
    this.#abandoned++;
    this.#fail(call, this.#timeoutError(call.log));
  }

  #timeoutError({ name }: KeyLog): TollgateError {
    return unanswered(name, `no reply within ${this.#parts.timeout} ms`);
  }

  #fail(call: Call, error: unknown): void {
    const { counters } = this.#parts;
    for (const operations of [call.batch.writes, call.batch.reads]) {
      counters.unanswered += operations.length;
      for (const operation of operations) operation.reject(error);
    }
    this.#end(call);
  }

  /** Ends a call, and starts the next one for its key if there is any. */
  #end(call: Call): void {
    const { log } = call;
    this.#deadlines.remove(call);
    if (log.freeing > 0) for (const { isFreeing } of call.batch.writes) if (isFreeing) log.freeing--;
    const hadEntry = call.batch.text !== "";
    call.end();
    log.isBusy = false;
    if (log.pending.length > 0 || (log.isTooLong && hadEntry)) this.#enqueue(log);
    if (this.#onIdle !== undefined && this.#isIdle) this.#onIdle();
  }
}
