import { inWords, TollgateError } from "../errors/error.ts";
import type { Outage } from "../events/outage.ts";
import { replay } from "../wasm/generated.ts";
import type { Breaker } from "./breaker.ts";
import { Call } from "./call.ts";
import type { Runner } from "./client.ts";
import { RedisClock } from "./clock.ts";
import { Deadlines } from "./deadlines.ts";
import { stateLost, unanswered, unreadableValue } from "./errors.ts";
import type { KeyLog } from "./key-log.ts";
import { LogReader } from "./log-reader.ts";
import { Message } from "./message.ts";
import { type Operation, takeBatch } from "./operation.ts";
import type { Outcome, Replicas, Result } from "./replicas.ts";
import { readReply } from "./reply.ts";
import { Schedule } from "./schedule.ts";
import type { Counters } from "./stats.ts";
import { Tags } from "./tags.ts";
import { Transport } from "./transport.ts";

/** How many times a call is sent at most. */
const maxSends = 8;

/** The parts of an exchange. */
export interface ExchangeParts {
  readonly runner: Runner;
  readonly breaker: Breaker;
  readonly outage: Outage;
  readonly replicas: Replicas;
  readonly timeout: number;
  readonly restore: boolean;
  readonly counters: Counters;
}

/** Sends the pending operations of the keys, one call at a time for a key, and settles them by the replies. */
export class Exchange {
  readonly #breaker: Breaker;
  readonly #replicas: Replicas;
  readonly #timeout: number;
  readonly #counters: Counters;
  /** The text of the policies, as calls send it. */
  readonly #policies: string;
  readonly #tags = new Tags();
  readonly #clock = new RedisClock();
  readonly #deadlines: Deadlines<Call>;
  readonly #schedule = new Schedule((logs) => this.#sendAll(logs.map((log) => this.#start(log))));
  readonly #reader: LogReader;
  readonly #transport: Transport;
  /** Called once no operation is under way. */
  #onIdle: (() => void) | undefined;

  constructor({ runner, breaker, outage, replicas, timeout, restore, counters }: ExchangeParts) {
    this.#breaker = breaker;
    this.#replicas = replicas;
    this.#timeout = timeout;
    this.#deadlines = new Deadlines(timeout, (call) => this.#timeOut(call));
    this.#counters = counters;
    this.#policies = `${replicas.policiesText}|`;
    this.#reader = new LogReader(replicas, this.#tags, restore, counters);
    const receiver = {
      receive: (message: Message, awaited: readonly Call[], reply: unknown) => {
        outage.responded();
        if (awaited.length === 0) {
          this.#schedule.failed(message.calls.length);
          return;
        }
        const now = performance.now();
        this.#schedule.received(message.calls.length, now - message.sentAt);
        this.#receive(message, awaited, reply, now);
      },
      fail: (message: Message, awaited: readonly Call[], error: unknown) => {
        this.#schedule.failed(message.calls.length);
        const reason = String((error as Error | null)?.message ?? error);
        for (const call of awaited) this.#fail(call, unanswered(call.log.name, reason, error));
      },
      divide: (message: Message, awaited: readonly Call[]) => {
        this.#schedule.failed(message.calls.length);
        this.#sendAll(awaited);
      },
    };
    this.#transport = new Transport(runner, breaker, receiver, timeout, counters);
  }

  /** Adds an operation on a key. It is sent with all others of this tick. */
  add(log: KeyLog, operation: Operation): void {
    const { reason } = this.#breaker;
    if (reason !== undefined) {
      this.#counters.unanswered++;
      operation.reject(unanswered(log.name, reason));
      return;
    }
    log.pending.push(operation);
    if (operation.isFreeing) log.freeing++;
    if (!log.isBusy) this.#enqueue(log);
  }

  /** Calls `work` once no operation is under way: they all end by their timeouts. */
  whenIdle(work: () => void): void {
    if (this.#isIdle) work();
    else this.#onIdle = work;
  }

  get #isIdle(): boolean {
    return this.#deadlines.isEmpty && this.#schedule.isEmpty;
  }

  #enqueue(log: KeyLog): void {
    log.isBusy = true;
    this.#schedule.add(log);
  }

  /** Starts a call with the pending operations of a key. */
  #start(log: KeyLog): Call {
    const batch = takeBatch(log.pending);
    const call = new Call(log, batch);
    this.#counters.operations += batch.writes.length;
    this.#deadlines.add(call);
    return call;
  }

  #sendAll(calls: readonly Call[]): void {
    if (calls.length === 1) this.#send(calls);
    else if (calls.length > 1) this.#transport.eachMessage(calls, (calls) => this.#send(calls));
  }

  /** Sends calls in one message, with what is known of their keys now. */
  #send(all: readonly Call[]): void {
    const now = performance.now();
    const unavailable = this.#transport.unavailable(now);
    let calls = all;
    for (const call of all) {
      let reason = unavailable;
      if (reason === undefined && ++call.sends > maxSends) reason = "the call was sent too many times";
      if (this.#isLost(call.log)) this.#fail(call, stateLost());
      else if (reason !== undefined) this.#fail(call, unanswered(call.log.name, reason));
      else continue;
      calls = [];
    }
    if (calls !== all) calls = all.filter(({ isEnded }) => !isEnded);
    if (calls.length === 0) return;
    try {
      const latest = (calls[0] as Call).log.clock.latest(now) || this.#clock.latest(now);
      let earliest = Number.POSITIVE_INFINITY;
      for (const call of calls) {
        earliest = Math.min(earliest, this.#deadlines.left(call));
        this.#prepare(call, latest);
      }
      // Before the first reply Redis's time is unknown. A deadline of 0 makes the script return only the time.
      const deadline = latest === 0 ? 0 : latest + earliest;
      // Its tag follows those of the bases.
      const message = new Message(calls, this.#tags.next(), now);
      this.#transport.transmit(message, message.args(deadline, this.#policies, this.#ttlFor(0)));
      this.#schedule.sent(calls.length);
    } catch (error) {
      for (const call of calls) this.#fail(call, error);
    }
  }

  /** Returns whether a trap has ended the states of a key. */
  #isLost(log: KeyLog): boolean {
    return log.isDropped || this.#replicas.isLost;
  }

  /** Adds to a call what its key needs: a base, or a longer time to live. */
  #prepare(call: Call, latest: number): void {
    const replicas = this.#replicas;
    const { log } = call;
    if (log.isLong && call.base === undefined && log.mark !== "") call.base = this.#reader.shortened(log);
    const { writes } = call.batch;
    if (call.ttl > 0 || writes.length === 0 || log.isUnreadable) return;
    // A reservation is charged when it expires, and the charge lasts as long as any other.
    let longest = 0;
    for (const { ttl } of writes) if (ttl > longest) longest = ttl;
    if (latest + replicas.longest + longest > log.livesUntil) call.ttl = this.#ttlFor(longest);
  }

  /** Returns the time to live of a key whose states last so much longer than they do after a hit. */
  #ttlFor(longer: number): number {
    return Math.max(2 * (this.#replicas.longest + longer), 2 * this.#timeout + 1_000);
  }

  #receive(message: Message, awaited: readonly Call[], raw: unknown, now: number): void {
    try {
      const reply = readReply(raw, message.calls.length);
      if (reply === undefined)
        throw unanswered(message.calls[0]?.log.name as string, `the reply of the script is ${inWords(raw)}`);
      for (const { log } of awaited) log.clock.update(reply.now, message.sentAt, now);
      this.#clock.update(reply.now, message.sentAt, now);
      if (reply.texts.length === 0) this.#sendLater(awaited);
      else this.#handleAll(message, reply.texts, reply.now);
    } catch (error) {
      for (const call of awaited) if (!call.isEnded) this.#fail(call, error);
    }
  }

  /** Sends calls again that came too late by the last estimate of Redis's time, unless they really are. */
  #sendLater(calls: readonly Call[]): void {
    const early: Call[] = [];
    for (const call of calls) {
      if (this.#deadlines.left(call) > 0) early.push(call);
      else this.#fail(call, this.#timeoutError(call.log));
    }
    this.#sendAll(early);
  }

  /** Replays the replies for all keys of a message, and ends or repeats their calls. */
  #handleAll({ calls, tag }: Message, texts: readonly string[], now: number): void {
    const slotOf = ({ isEnded, log }: Call) => (isEnded || log.isDropped ? replay.noSlot : log.slot);
    const outcomes = this.#replicas.replayAll(calls.map(slotOf), texts, tag, now);
    let index = 0;
    for (const call of calls) {
      const text = texts[index] as string;
      const outcome = outcomes?.[index++] as Outcome;
      if (call.isEnded) continue;
      try {
        if (this.#isLost(call.log)) throw stateLost();
        if (outcomes === undefined) throw unreadableValue(call.log.name, replay.status.outOfMemory);
        call.next = this.#reader.read(call, text, outcome, tag, now);
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
    this.#sendAll(again);
  }

  #settle(call: Call): void {
    const { writes, reads } = call.batch;
    const results = call.results as readonly Result[];
    let index = 0;
    for (const operation of writes) settle(operation, results[index++] as Result);
    for (const operation of reads) settle(operation, results[index++] as Result);
    this.#end(call);
  }

  #timeOut(call: Call): void {
    this.#transport.abandon(call.log.name);
    this.#fail(call, this.#timeoutError(call.log));
  }

  #timeoutError({ name }: KeyLog): TollgateError {
    return unanswered(name, `no reply within ${this.#timeout} ms`);
  }

  #fail(call: Call, error: unknown): void {
    for (const operations of [call.batch.writes, call.batch.reads]) {
      this.#counters.unanswered += operations.length;
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

function settle(operation: Operation, result: Result): void {
  if (result instanceof TollgateError) operation.reject(result);
  else operation.resolve(result);
}
