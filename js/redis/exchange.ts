import { inWords, type TollgateError } from "../errors/error.ts";
import { replay } from "../wasm/generated.ts";
import { Call } from "./call.ts";
import type { Runner } from "./client.ts";
import { RedisClock } from "./clock.ts";
import { Deadlines } from "./deadlines.ts";
import { isNoScript, rejectedOperation, stateLost, unanswered, unreadableValue } from "./errors.ts";
import type { KeyLog } from "./key-log.ts";
import { type Operation, takeBatch } from "./operation.ts";
import type { Replicas, Result } from "./replicas.ts";
import { type Reply, readReply } from "./reply.ts";
import type { Counters } from "./stats.ts";

/** How many times a call is sent at most. */
const maxSends = 8;

/** How many calls send the text of the policies after another process wrote under other policies. */
const maxCallsWithPolicies = 16;

/** How many calls may have timed out without a reply before new ones fail at once. */
const maxAbandoned = 256;

/** The parts of an exchange. */
export interface ExchangeParts {
  readonly runner: Runner;
  readonly replicas: Replicas;
  /** The name of this limiter in marks: 8 letters or digits. */
  readonly process: string;
  readonly timeout: number;
  readonly restore: boolean;
  readonly counters: Counters;
}

/** Sends the pending operations of each key, one call at a time for a key, and replays the replies. */
export class Exchange {
  readonly #parts: ExchangeParts;
  readonly #deadlines = new Deadlines<Call>((call) => this.#timeOut(call));
  readonly #clock = new RedisClock();
  /** The keys whose calls are sent at the end of this tick. */
  readonly #ready: KeyLog[] = [];
  /** The number of the last entry. */
  #number = 0;
  /** How many calls timed out and have no reply yet. */
  #abandoned = 0;
  /** When the last call was tried in spite of those. */
  #lastTryAt = Number.NEGATIVE_INFINITY;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
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

  #enqueue(log: KeyLog): void {
    log.isBusy = true;
    if (this.#ready.push(log) === 1) setImmediate(() => this.#flush());
  }

  /** Sends a call for each key that is ready. */
  #flush(): void {
    const ready = this.#ready.splice(0);
    // Corked, so that all calls take one system call instead of one each.
    const sockets = this.#parts.runner.sockets();
    for (const socket of sockets) socket.cork();
    for (const log of ready) this.#start(log);
    for (const socket of sockets) socket.uncork();
  }

  /** Starts a call with the pending operations of a key. */
  #start(log: KeyLog): void {
    const { fingerprint } = this.#parts.replicas;
    const oldest = log.pending[0]?.since ?? performance.now();
    log.pending.unshift(...log.deferred.splice(0));
    const batch = takeBatch(log.pending);
    const hasEntry = batch.writes.length > 0;
    const number = hasEntry ? ++this.#number : 0;
    const mark = hasEntry ? `!${this.#parts.process}${number.toString(36)}.${fingerprint}` : "";
    const call = new Call(log, batch, { number, mark }, oldest + this.#parts.timeout);
    this.#parts.counters.operations += batch.writes.length;
    this.#deadlines.add(call);
    this.#send(call);
  }

  /** Sends a call, with the mark and offset that are known now. */
  #send(call: Call): void {
    const { log } = call;
    const now = performance.now();
    try {
      const reason = log.isDropped ? "its states were lost in a trap" : this.#unavailable(now);
      if (reason !== undefined) throw unanswered(log.name, reason);
      if (++call.sends > maxSends) throw unanswered(log.name, "the call was sent too many times");
      call.sentAt = now;
      this.#parts.counters.calls++;
      this.#transmit(call, this.#args(call, now), false);
    } catch (error) {
      this.#fail(call, error);
    }
  }

  /** Returns the arguments of the script, which `script.ts` documents. */
  #args(call: Call, now: number): string[] {
    const { replicas, restore } = this.#parts;
    const { log, batch } = call;
    const latest = log.clock.latest(now) || this.#clock.latest(now);
    // Before the first reply Redis's time is unknown. A deadline of 0 makes the script return only the time.
    const deadline = latest === 0 ? 0 : Math.ceil(latest + call.deadline - now);
    if (call.base === "" && log.mark !== "" && log.excess > 1) call.base = replicas.base(log.slot);
    const withPolicies = call.withPolicies || log.mark === "" || log.callsWithPolicies > 0;
    // No entry is written to an unreadable value, and none is written twice.
    const writes = call.results === undefined && !log.isUnreadable;
    const entry = writes ? batch.text + call.mark : "";
    const args = [`${deadline} ${log.offset} ${this.#ttl(call, latest)} ${Number(restore)}`, log.mark, entry];
    if (withPolicies || call.base !== "") args.push(withPolicies ? replicas.policiesText : "");
    if (call.base !== "") args.push(call.base);
    return args;
  }

  /** Returns the time to live of the key, in milliseconds; negative if it is only for a new key. */
  #ttl(call: Call, latest: number): number {
    const { replicas, timeout } = this.#parts;
    if (call.ttl > 0) return call.ttl;
    // A reservation is charged when it expires, and the charge lasts as long as any other.
    let lifetime = replicas.longest;
    for (const { ttl } of call.batch.writes)
      if (ttl > 0) lifetime = Math.max(lifetime, ttl + replicas.longest);
    const ttl = Math.max(2 * lifetime, 2 * timeout + 1_000);
    const isDue = call.mark !== "" && !call.log.isUnreadable && latest + lifetime > call.log.livesUntil;
    if (isDue) call.ttl = ttl;
    return isDue ? ttl : -ttl;
  }

  #transmit(call: Call, args: readonly string[], byText: boolean): void {
    const { runner, counters } = this.#parts;
    const { name } = call.log;
    const reply = byText ? runner.byText(name, args) : runner.bySha(name, args);
    const received = (reply: unknown) => this.#receive(call, reply);
    const failed = (error: unknown) => {
      if (call.isEnded) {
        this.#abandoned--;
      } else if (!byText && isNoScript(error)) {
        counters.scriptLoads++;
        this.#transmit(call, args, true);
      } else this.#fail(call, unanswered(name, String((error as Error | null)?.message ?? error), error));
    };
    reply.then(received, failed);
  }

  /** Returns why no call can be sent now; `undefined` if one can. */
  #unavailable(now: number): string | undefined {
    if (this.#abandoned >= maxAbandoned && now - this.#lastTryAt < this.#parts.timeout)
      return `${this.#abandoned} earlier calls have no reply`;
    this.#lastTryAt = now;
    return this.#parts.runner.unavailable();
  }

  #receive(call: Call, raw: unknown): void {
    if (call.isEnded) {
      this.#abandoned--;
      return;
    }
    const { log } = call;
    try {
      const reply = readReply(raw);
      if (reply === undefined) throw unanswered(log.name, `the reply of the script is ${inWords(raw)}`);
      if (log.isDropped) throw stateLost();
      const now = performance.now();
      log.clock.update(reply.now, call.sentAt, now);
      this.#clock.update(reply.now, call.sentAt, now);
      this.#handle(call, reply);
    } catch (error) {
      this.#fail(call, error);
    }
  }

  /** Handles a reply by its kind, which `script.ts` explains. */
  #handle(call: Call, reply: Reply): void {
    const { log } = call;
    switch (reply.kind) {
      case "+":
      case "#":
      case "=":
        this.#replay(call, reply);
        break;
      case "t":
        call.withPolicies = true;
        log.callsWithPolicies = maxCallsWithPolicies;
        this.#send(call);
        break;
      case ">":
        if (call.deadline <= performance.now()) throw this.#timeoutError(log);
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

  /** Sends a call again whose key Redis has lost, with a base that restores the key unless its states have ended. */
  #restore(call: Call, now: number): void {
    const { replicas, restore } = this.#parts;
    const { log } = call;
    if (restore && replicas.endsAt(log.slot, now) > 0) {
      call.base = replicas.base(log.slot);
      call.withPolicies = true;
    } else {
      replicas.forget(log.slot);
      log.forget();
      call.base = "";
    }
    this.#send(call);
  }

  /** Replays the entries or the value in a reply, and returns the status. Throws if they cannot be read. */
  #load(call: Call, reply: Reply): number {
    const { replicas, counters } = this.#parts;
    const { log, base } = call;
    const { kind, text, offset } = reply;
    const isWhole = kind === "=" || kind === "l";
    const code = isWhole
      ? replicas.load(log.slot, text, call.number)
      : replicas.replay(log.slot, text, call.number);
    if (code < 0) {
      log.forget();
      log.isUnreadable = true;
      throw unreadableValue(log.name, code, text.slice(0, 64));
    }
    if (base !== "") {
      if (offset === 1 + base.length + log.mark.length) counters.bases++;
      if (kind === "=" && text.startsWith(base, 1)) counters.restored++;
      call.base = "";
    }
    log.update(reply, call.mark, call.entryLength);
    if (isWhole) log.livesUntil = 0;
    if ((code & replay.status.foreign) !== 0) log.callsWithPolicies = maxCallsWithPolicies;
    else if (log.callsWithPolicies > 0) log.callsWithPolicies--;
    return code;
  }

  /** Replays the reply to an executed call, and settles its operations once the key lives long enough. */
  #replay(call: Call, reply: Reply): void {
    const { replicas } = this.#parts;
    const { log, batch } = call;
    const code = this.#load(call, reply);
    if (log.isUnreadable) {
      log.isUnreadable = false;
      this.#send(call);
      return;
    }
    if (call.ttl > 0) log.livesUntil = Math.max(log.livesUntil, reply.now + call.ttl);
    if (call.results === undefined) this.#readResults(call, code, reply.now);
    const ends = batch.writes.length === 0 ? 0 : replicas.endsAt(log.slot, reply.now);
    if (ends <= log.livesUntil) {
      this.#settle(call);
      return;
    }
    // Without a longer time to live, Redis would drop states before they end.
    call.ttl = 2 * (ends - reply.now);
    this.#send(call);
  }

  /** Reads the results of a call whose entry was replayed. */
  #readResults(call: Call, code: number, now: number): void {
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
    call.end();
    log.isBusy = false;
    // A value that is far too long is shortened at once, even without pending operations.
    if (log.pending.length > 0 || (log.excess > 2 && call.number > 0)) this.#enqueue(log);
  }
}
