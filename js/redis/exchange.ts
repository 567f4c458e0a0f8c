import { replay } from "../core/generated.ts";
import { inWords, TollgateError } from "../error.ts";
import { Call } from "./call.ts";
import type { Runner } from "./client.ts";
import { RedisClock } from "./clock.ts";
import { Deadlines } from "./deadlines.ts";
import { isNoScript, unanswered, unreadableValue } from "./errors.ts";
import type { KeyLog } from "./key-log.ts";
import { type Operation, takeBatch } from "./operation.ts";
import type { Replicas, Result } from "./replicas.ts";
import { type Reply, readReply } from "./reply.ts";
import type { Counters } from "./stats.ts";

/** How often one call is sent at the most. */
const mostSends = 8;

/** Over how many calls the text of the policies is sent after others wrote under other policies. */
const mixedCalls = 16;

/** How many calls may be without a reply after they were given up, before new ones fail at once. */
const mostAbandoned = 256;

/** What an exchange is made of. */
export interface ExchangeParts {
  readonly runner: Runner;
  readonly replicas: Replicas;
  /** Names this limiter in marks: 8 letters or digits. */
  readonly process: string;
  readonly timeout: number;
  readonly restore: boolean;
  readonly counters: Counters;
  /** Settles an operation that got no result. */
  readonly fail: (operation: Operation, error: unknown) => void;
}

/** Sends what waits for each key, one call at a time, and replays what comes back. */
export class Exchange {
  readonly #parts: ExchangeParts;
  readonly #deadlines = new Deadlines();
  readonly #clock = new RedisClock();
  readonly #ready: KeyLog[] = [];
  #number = 0;
  /** How many calls were given up whose promises are pending. */
  #abandoned = 0;
  #probedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  /** Adds an operation to what waits for a key. It is sent with all others of this tick. */
  add(log: KeyLog, operation: Operation): void {
    log.waiting.push(operation);
    if (operation.isRelaxing) log.relaxing++;
    if (!log.isBusy) this.#enqueue(log);
  }

  /** Adds an operation that goes with the next call for its key, if there is one. */
  addLater(log: KeyLog, operation: Operation): void {
    log.later.push(operation);
    log.relaxing++;
  }

  #enqueue(log: KeyLog): void {
    log.isBusy = true;
    if (this.#ready.push(log) === 1) setImmediate(() => this.#flush());
  }

  /** Sends a call for each key that is ready. */
  #flush(): void {
    const ready = this.#ready.splice(0);
    // One write for all of them: a write for each would be a system call for each.
    const streams = this.#parts.runner.streams();
    for (const stream of streams) stream.cork();
    for (const log of ready) this.#start(log);
    for (const stream of streams) stream.uncork();
  }

  #start(log: KeyLog): void {
    const { fingerprint } = this.#parts.replicas;
    const oldest = log.waiting[0]?.since ?? performance.now();
    log.waiting.unshift(...log.later.splice(0));
    const batch = takeBatch(log.waiting);
    const hasEntry = batch.writes.length > 0;
    const number = hasEntry ? ++this.#number : 0;
    const mark = hasEntry ? `!${this.#parts.process}${number.toString(36)}.${fingerprint}` : "";
    const giveUp = (call: Call) => this.#giveUp(call);
    const call = new Call(log, batch, { number, mark }, oldest + this.#parts.timeout, giveUp);
    this.#parts.counters.operations += batch.writes.length;
    this.#deadlines.add(call);
    this.#send(call);
  }

  /** Sends a call, by what is known of the log now. */
  #send(call: Call): void {
    const { log } = call;
    const now = performance.now();
    try {
      const trouble = log.isDropped ? "its states were lost in a trap" : this.#trouble(now);
      if (trouble !== undefined) throw unanswered(log.name, trouble);
      if (++call.sends > mostSends) throw unanswered(log.name, "it was asked too often");
      call.sentAt = now;
      this.#parts.counters.calls++;
      this.#transmit(call, this.#args(call, now), false);
    } catch (error) {
      this.#fail(call, error);
    }
  }

  #args(call: Call, now: number): string[] {
    const { replicas, restore } = this.#parts;
    const { log, batch } = call;
    const latest = log.clock.latest(now) || this.#clock.latest(now);
    // Without any idea of Redis's time the call only asks for it.
    const deadline = latest === 0 ? 0 : Math.ceil(latest + call.due - now);
    if (call.base === "" && log.mark !== "" && log.excess > 1) call.base = replicas.base(log.slot);
    const withText = call.withText || log.mark === "" || log.mixed > 0;
    // Nothing is written to a value that could not be read, nor twice.
    const writes = call.results === undefined && !log.isSuspect;
    const entry = writes ? batch.text + call.mark : "";
    const args = [`${deadline} ${log.offset} ${this.#ttl(call, latest)} ${Number(restore)}`, log.mark, entry];
    if (withText || call.base !== "") args.push(withText ? replicas.policiesText : "");
    if (call.base !== "") args.push(call.base);
    return args;
  }

  /** Returns the time to live: negative if it need not be renewed. */
  #ttl(call: Call, latest: number): number {
    const { replicas, timeout } = this.#parts;
    if (call.ttl > 0) return call.ttl;
    // A reservation that expires is charged then, and that lasts.
    let lasts = replicas.longest;
    for (const { ttl } of call.batch.writes) if (ttl > 0) lasts = Math.max(lasts, ttl + replicas.longest);
    const ttl = Math.max(2 * lasts, 2 * timeout + 1_000);
    const isDue = call.mark !== "" && !call.log.isSuspect && latest + lasts > call.log.livesUntil;
    if (isDue) call.ttl = ttl;
    return isDue ? ttl : -ttl;
  }

  #transmit(call: Call, args: readonly string[], byText: boolean): void {
    const { runner, counters } = this.#parts;
    const { name } = call.log;
    const sent = byText ? runner.byText(name, args) : runner.bySha(name, args);
    const received = (reply: unknown) => this.#receive(call, reply);
    const failed = (error: unknown) => {
      if (call.isOver) {
        this.#abandoned--;
      } else if (!byText && isNoScript(error)) {
        counters.scriptLoads++;
        this.#transmit(call, args, true);
      } else this.#fail(call, unanswered(name, String((error as Error | null)?.message ?? error), error));
    };
    sent.then(received, failed);
  }

  /** Returns why nothing can be sent now. */
  #trouble(now: number): string | undefined {
    if (this.#abandoned >= mostAbandoned && now - this.#probedAt < this.#parts.timeout)
      return `${this.#abandoned} earlier calls have no reply`;
    this.#probedAt = now;
    return this.#parts.runner.trouble();
  }

  #receive(call: Call, raw: unknown): void {
    if (call.isOver) {
      this.#abandoned--;
      return;
    }
    const { log } = call;
    try {
      const reply = readReply(raw);
      if (reply === undefined) throw unanswered(log.name, `the reply of the script is ${inWords(raw)}`);
      if (log.isDropped) throw stateLost();
      const now = performance.now();
      log.clock.note(reply.now, call.sentAt, now);
      this.#clock.note(reply.now, call.sentAt, now);
      this.#follow(call, reply);
    } catch (error) {
      this.#fail(call, error);
    }
  }

  /** Does what a reply asks for. */
  #follow(call: Call, reply: Reply): void {
    const { log } = call;
    switch (reply.kind) {
      case "+":
      case "#":
      case "=":
        this.#replay(call, reply);
        break;
      case "t":
        call.withText = true;
        log.mixed = mixedCalls;
        this.#send(call);
        break;
      case ">":
        if (call.due <= performance.now()) throw this.#late(log);
        this.#send(call);
        break;
      case "x":
        this.#restore(call, reply.now);
        break;
      case "l":
        this.#load(call, reply);
        call.base = this.#parts.replicas.base(log.slot);
        this.#send(call);
        break;
      default:
        this.#load(call, { ...reply, kind: "=" });
        throw unreadableValue(log.name, replay.status.malformed, reply.text);
    }
  }

  /** Tells a Redis that has lost a key what is known of it, if that still matters. */
  #restore(call: Call, now: number): void {
    const { replicas, restore } = this.#parts;
    const { log } = call;
    if (restore && replicas.endsAt(log.slot, now) > 0) {
      call.base = replicas.base(log.slot);
      call.withText = true;
    } else {
      replicas.forget(log.slot);
      log.forget();
      call.base = "";
    }
    this.#send(call);
  }

  /** Replays what a reply has brought, and returns the status of that. */
  #load(call: Call, reply: Reply): number {
    const { replicas, counters } = this.#parts;
    const { log, base } = call;
    const { kind, text, at } = reply;
    const isWhole = kind === "=" || kind === "l";
    const code = isWhole
      ? replicas.load(log.slot, text, call.number)
      : replicas.replay(log.slot, text, call.number);
    if (code < 0) {
      log.forget();
      log.isSuspect = true;
      throw unreadableValue(log.name, code, text.slice(0, 64));
    }
    if (base !== "") {
      if (at === 1 + base.length + log.mark.length) counters.bases++;
      if (kind === "=" && text.startsWith(base, 1)) counters.restored++;
      call.base = "";
    }
    log.follow(reply, call.mark, call.entryLength);
    if (isWhole) log.livesUntil = 0;
    if ((code & replay.status.foreign) !== 0) log.mixed = mixedCalls;
    else if (log.mixed > 0) log.mixed--;
    return code;
  }

  /** Replays a reply after which the call is done, unless the key has to live longer. */
  #replay(call: Call, reply: Reply): void {
    const { replicas } = this.#parts;
    const { log, batch } = call;
    const code = this.#load(call, reply);
    if (log.isSuspect) {
      log.isSuspect = false;
      this.#send(call);
      return;
    }
    if (call.ttl > 0) log.livesUntil = Math.max(log.livesUntil, reply.now + call.ttl);
    if (call.results === undefined) this.#read(call, code, reply.now);
    const ends = batch.writes.length === 0 ? 0 : replicas.endsAt(log.slot, reply.now);
    if (ends <= log.livesUntil) {
      this.#settle(call);
      return;
    }
    // The answer waits until the key lives long enough.
    call.ttl = 2 * (ends - reply.now);
    this.#send(call);
  }

  /** Reads the results of a call whose entry was replayed. */
  #read(call: Call, code: number, now: number): void {
    const { replicas } = this.#parts;
    const { log, batch } = call;
    if (batch.writes.length > 0 && (code & replay.status.own) === 0)
      throw unanswered(log.name, "the operation was counted, but its result is no longer in the log");
    for (const operation of batch.reads) {
      const code = replicas.read(log.slot, operation, now);
      if (code < 0) throw unreadableValue(log.name, code);
    }
    call.results = replicas.results([...batch.writes, ...batch.reads]);
  }

  #settle(call: Call): void {
    const { writes, reads } = call.batch;
    const results = call.results as readonly Result[];
    let at = 0;
    for (const operations of [writes, reads]) {
      for (const operation of operations) {
        const result = results[at++];
        if (result === undefined) operation.reject(rejected());
        else operation.resolve(result);
      }
    }
    this.#end(call);
  }

  #giveUp(call: Call): void {
    this.#abandoned++;
    this.#fail(call, this.#late(call.log));
  }

  #late({ name }: KeyLog): TollgateError {
    return unanswered(name, `no reply within ${this.#parts.timeout} ms`);
  }

  #fail(call: Call, error: unknown): void {
    const { counters, fail } = this.#parts;
    for (const operations of [call.batch.writes, call.batch.reads]) {
      counters.unanswered += operations.length;
      for (const operation of operations) fail(operation, error);
    }
    this.#end(call);
  }

  /** Goes on with what waits for the key. */
  #end(call: Call): void {
    const { log } = call;
    call.isOver = true;
    this.#deadlines.remove(call);
    if (log.relaxing > 0) for (const { isRelaxing } of call.batch.writes) if (isRelaxing) log.relaxing--;
    log.isBusy = false;
    // A value that is far too long is shortened at once, also if nothing is to be said.
    if (log.waiting.length > 0 || (log.excess > 2 && call.number > 0)) this.#enqueue(log);
  }
}

const stateLost = () =>
  new TollgateError("state_lost", "the states of this limiter were lost in a trap; they are read again");

const rejected = () =>
  new TollgateError("invalid_operation", "the operation does not fit the policies in force");
