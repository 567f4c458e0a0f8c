import { checkKey } from "../checks.ts";
import { inWords, TollgateError } from "../errors/error.ts";
import type { Costs, Decision, Key } from "../types.ts";
import { Alarm, never, type Timer } from "./alarm.ts";
import type { AcquireOptions, ThrottleOptions } from "./basic-throttle.ts";
import { Heap } from "./heap.ts";
import type { Budget, Limits, StoredPause, Timed } from "./limits.ts";
import { type Event, Line, type Waiter } from "./line.ts";
import { namedKey } from "./named-key.ts";
import { isOffline, whenOnline } from "./offline.ts";
import type { QueueState } from "./places.ts";
import { Reports } from "./reports.ts";
import { Signals } from "./signals.ts";

/** How long a store may decide about a call that must not wait, in milliseconds. */
const patience = 1_000;

/** The calls that wait for a limiter, or for a budget that others share. Each key has a line of its own. */
export class Queue {
  /** How many calls wait. */
  pending = 0;
  /** Whether no call is let through. */
  isPaused = false;
  /** Called when no call waits and no work runs any more. */
  onIdle: (() => void) | undefined;
  /** What decides; learned limits take its place when they are loaded. */
  limits: Limits;
  readonly #budget: Budget | undefined;
  readonly #clock: () => number;
  readonly #options: ThrottleOptions;
  readonly #maxQueue: number;
  readonly #lines = new Map<Key, Line>();
  readonly #events = new Heap<Event>((one, other) => one.at < other.at);
  readonly #alarm: Alarm;
  readonly #signals = new Signals<Waiter>((waiters, reason) => this.#rejectAll(waiters, reason));
  /** How much work of each key is running. */
  readonly #running = new Map<Key, number>();
  readonly #reports: Reports;
  /** Stops listening to the network. */
  #unlisten: (() => void) | undefined;

  constructor(
    limits: Limits,
    budget: Budget | undefined,
    clock: () => number,
    timer: Timer,
    options: ThrottleOptions,
  ) {
    this.limits = limits;
    this.#budget = budget;
    this.#clock = clock;
    this.#options = options;
    this.#maxQueue = options.maxQueue ?? never;
    // Other tabs use a shared budget too, and the end of being offline is not known.
    const isHidden = options.shared !== undefined;
    const known = () => (isHidden || this.#isOffline() ? undefined : this.limits);
    this.#reports = new Reports(clock, options.onChange, () => this.pending, known);
    this.#alarm = new Alarm(timer, (due) => this.#serveDue(due));
  }

  /** Waits until the limiter allows the cost; `take` takes it instead of a hit. */
  wait(
    { key: given, signal, maxWait = never, priority = 0, onChange }: AcquireOptions,
    tenant: Key | undefined,
    cost: Costs,
    take: Waiter["take"],
    resolve: Waiter["resolve"],
    reject: Waiter["reject"],
  ): void {
    signal?.throwIfAborted();
    const key = namedKey(given);
    checkKey(key);
    // A cost that can never fit does not wait for the calls before it.
    if (cost !== 1 && !this.limits.loading) {
      const { retryAfter, limit } = this.limits.peek(key, cost);
      if (retryAfter === never) throw tooMuch(cost, limit);
    }
    const now = this.#clock();
    this.#catchUp(now);
    const [line, deadline] = [this.#line(key), now + maxWait];
    // Written out: fields that are added later, or spread, take more memory.
    const waiter: Waiter = {
      line,
      cost,
      priority,
      deadline,
      resolve,
      reject,
      rank: undefined,
      previous: undefined,
      next: undefined,
      take,
    };
    this.#enter(waiter, tenant, signal, now);
    if (onChange === undefined || isGone(waiter)) return;
    line.listeners.set(waiter, { listen: onChange });
    this.#reports.note(line);
  }

  /** Lets no call of a key through for a while. */
  hold(key: Key, milliseconds: number): void {
    const now = this.#clock();
    this.#catchUp(now);
    const line = this.#line(key);
    const until = now + milliseconds;
    if (line.pause(until, now)) this.#budget?.hold(key, until, milliseconds);
    this.#wake(line, line.pausedUntil);
    this.#setAlarm(now);
  }

  /** Whether no call waits and no work runs. */
  get isIdle(): boolean {
    return this.pending === 0 && this.#running.size === 0;
  }

  /** Counts work of a key that runs. */
  start(key: Key): void {
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
  }

  /** Counts work of a key that has ended, and lets through the calls that now fit. */
  end(key: Key): void {
    const left = (this.#running.get(key) ?? 1) - 1;
    if (left === 0) this.#running.delete(key);
    else this.#running.set(key, left);
    if (this.isIdle) this.onIdle?.();
    const line = this.#lines.get(key);
    if (line === undefined) return;
    this.#serve(line);
    this.#setAlarm(this.#clock());
  }

  /** Rejects all waiting calls. Pauses stay in force. */
  clear(reason: unknown): void {
    const now = this.#clock();
    for (const line of this.#lines.values()) {
      for (let waiter = line.first(); waiter !== undefined; waiter = line.first())
        this.#reject(waiter, reason);
      this.#remove(line, now);
    }
    this.#setAlarm(now);
  }

  /** Forgets the pauses too. */
  dispose(): void {
    for (const line of this.#lines.values()) this.#remove(line, never);
  }

  /** Calls a listener when the queue changes. Returns a function that stops that. */
  subscribe(listener: (queue: QueueState) => void): () => void {
    return this.#reports.subscribe(listener, this.#lines.values());
  }

  /** Serves the line of a key, or all lines, after the shared budget has changed. */
  serveAgain(key?: Key): void {
    for (const line of this.#lines.values()) {
      if (key !== undefined && line.key !== key) continue;
      line.outdated = line.deciding !== undefined;
      this.#serve(line);
    }
    this.#setAlarm(this.#clock());
  }

  #line(key: Key): Line {
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = new Line(key);
      this.#lines.set(key, line);
    }
    return line;
  }

  #enter(waiter: Waiter, tenant: Key | undefined, signal: AbortSignal | undefined, now: number): void {
    const { line, deadline } = waiter;
    line.add(waiter, tenant);
    this.pending += 1;
    this.#reports.note(line);
    const isFirst = line.first() === waiter;
    if (isFirst) this.#serve(line, now);
    if (isGone(waiter)) return;
    const maxQueue = this.#maxQueue;
    // A call whose decision is under way is not waiting yet.
    if (this.pending > maxQueue && !(isFirst && line.deciding)) {
      const reason = queueFull(maxQueue);
      // One that was first has put off the next.
      if (isFirst) this.#rejectAll([waiter], reason);
      else this.#reject(waiter, reason);
      return;
    }
    if (deadline < never) waiter.event = this.#schedule(deadline, line, waiter);
    if (signal !== undefined) this.#listen(signal, waiter);
    if (isFirst || deadline < never) this.#setAlarm(this.#clock());
  }

  /** Listens to a signal. A signal that throws rejects the waiter, so that it does not stay in the line. */
  #listen(signal: AbortSignal, waiter: Waiter): void {
    try {
      waiter.unlisten = this.#signals.add(signal, waiter);
    } catch (error) {
      this.#rejectAll([waiter], error);
    }
  }

  /** Rejects waiters, and serves their lines: a later waiter may fit where they did not. */
  #rejectAll(waiters: readonly Waiter[], reason: unknown): void {
    for (const waiter of waiters) this.#reject(waiter, reason);
    for (const line of new Set(waiters.map(({ line }) => line))) this.#serve(line);
    this.#setAlarm(this.#clock());
  }

  /** Lets waiters through in order while they fit, and schedules when the next one may. */
  #serve(line: Line, now = this.#clock()): void {
    line.followClock(now);
    while (!line.deciding) {
      const waiter = line.first();
      if (waiter === undefined) {
        this.#remove(line, now);
        return;
      }
      if (Math.max(Math.min(now, line.decidingSince), line.pausedUntil) > waiter.deadline) {
        this.#reject(waiter, tooLong());
        continue;
      }
      if (line.pausedUntil > now) {
        this.#wake(line, line.pausedUntil);
        return;
      }
      if (this.isPaused || this.#isOffline()) {
        if (!this.isPaused) this.#unlisten ??= whenOnline(() => this.serveAgain());
        this.#wake(line, never);
        return;
      }
      const decision = this.#decide(line.key, waiter);
      if (decision === undefined) continue;
      if (decision instanceof Promise) {
        line.deciding = waiter;
        line.decidingSince = Math.min(line.decidingSince, now);
        this.#await(line, waiter, decision);
      } else if (!this.#handle(line, waiter, { decision, now: this.#clock() })) return;
    }
  }

  /** Returns whether calls wait for the network. */
  #isOffline(): boolean {
    return this.#options.offline === "wait" && isOffline();
  }

  /** Returns the decision about a waiter; undefined if that threw and the waiter was rejected. */
  #decide(key: Key, waiter: Waiter): Decision | Promise<Timed | StoredPause> | undefined {
    try {
      const { cost, take } = waiter;
      return (
        take?.(cost) ??
        this.#budget?.take(key, cost, waiter.deadline, () => !isGone(waiter)) ??
        this.limits.loading?.then(() => ({ decision: this.limits.hit(key, cost), now: this.#clock() })) ??
        this.limits.hit(key, cost)
      );
    } catch (error) {
      this.#reject(waiter, error);
      return undefined;
    }
  }

  async #await(line: Line, waiter: Waiter, promise: Promise<Timed | StoredPause>): Promise<void> {
    let isTurn = false;
    let isLate = false;
    const decided = () => {
      isLate = line.deciding !== waiter;
      if (!isLate) line.deciding = undefined;
    };
    try {
      const result = await promise;
      decided();
      if ("pausedUntil" in result) {
        line.pause(result.pausedUntil, this.#clock());
        isTurn = true;
      } else {
        // The cost that was charged for a waiter who has left meanwhile goes to the next one, if it is enough.
        const isLeft = isGone(waiter) && result.decision.allowed && waiter.take === undefined;
        const next = isLeft ? line.first() : waiter;
        if (next === waiter || (next && Number(next.cost) <= Number(waiter.cost)))
          this.#handle(line, next, result);
      }
    } catch (error) {
      decided();
      this.#reject(waiter, error);
    }
    if (!isLate) this.#goOn(line, isTurn);
    this.#setAlarm(this.#clock());
    // A decision that came after its call was rejected has used the budget again.
    if (this.pending === 0) this.#rest();
  }

  /** Serves a line on which a store has decided, if it is the next waiter's turn. */
  #goOn(line: Line, isTurn: boolean): void {
    const isDue = isTurn || line.outdated || line.wakeAt <= this.#clock() || line.wakeAt === never;
    line.outdated = false;
    if (isDue) this.#serve(line);
    if (!line.deciding) this.#rejectOverdue(line);
  }

  /** Rejects the waiters whose time ran out while the store decided. */
  #rejectOverdue(line: Line): void {
    line.decidingSince = never;
    if (line.overdue.size === 0) return;
    for (const waiter of line.overdue) this.#reject(waiter, tooLong());
    this.#serve(line);
  }

  /** Lets a waiter through, rejects it, or schedules its next turn. Returns whether it is the next waiter's turn. */
  #handle(line: Line, waiter: Waiter, { decision, now }: Timed): boolean {
    if (isGone(waiter)) return true;
    const at = now + decision.retryAfter;
    if (decision.allowed) {
      this.#leave(waiter, true);
      waiter.resolve(decision);
    } else if (at === never) {
      this.#reject(waiter, tooMuch(waiter.cost, decision.limit));
    } else if (at > waiter.deadline && !this.#running.has(line.key)) {
      // Work that is running may end sooner than its reservation.
      this.#reject(waiter, tooLong());
    } else {
      this.#wake(line, at);
      return false;
    }
    return true;
  }

  /** Schedules when a line is served again, instead of any earlier schedule. */
  #wake(line: Line, at: number): void {
    if (line.wakeAt === at) return;
    this.#reports.note(line);
    if (line.event !== undefined) this.#events.remove(line.event);
    line.event = at === never ? undefined : this.#schedule(at, line, undefined);
  }

  #schedule(at: number, line: Line, waiter: Waiter | undefined): Event {
    const event = { at, line, waiter, place: -1 };
    this.#events.push(event);
    return event;
  }

  /** Handles due events: serves a line again, or rejects a waiter whose time is up. */
  #serveDue(due: number): void {
    // A clock that stepped back must not repeat a wait that the timer has waited for.
    const until = Math.max(due, this.#clock());
    // All are taken out first: with a clock that stepped back, events scheduled on the way could go on for ever.
    for (const event of this.#takeDue(until)) {
      const { at, line, waiter } = event;
      // The line was scheduled again on the way, or the waiter has left.
      if (waiter === undefined ? line.event !== event : isGone(waiter)) continue;
      if (waiter === undefined) line.event = undefined;
      if (line.pausedUntil <= at) line.pausedUntil = 0;
      this.#serve(line);
      if (waiter !== undefined) this.#expire(line, waiter, at);
    }
    this.#setAlarm(this.#clock());
  }

  /** Removes and returns all events that are due by a time. */
  #takeDue(until: number): Event[] {
    const due: Event[] = [];
    for (let event = this.#events.first(); event && event.at <= until; event = this.#events.first()) {
      this.#events.remove(event);
      due.push(event);
    }
    return due;
  }

  /** Rejects a waiter whose time is up, unless it was let through at the last moment. */
  #expire(line: Line, waiter: Waiter, at: number): void {
    if (isGone(waiter)) return;
    const last = line.decidingSince + patience;
    // A slow store is no reason to reject a waiter that it may allow, but one that does not answer is.
    if (line.deciding && at < last) {
      line.overdue.add(waiter);
      waiter.event = this.#schedule(last, line, waiter);
      return;
    }
    this.#reject(waiter, tooLong());
    this.#giveUpDecision(line);
    this.#serve(line);
  }

  /** Asks a store anew that has not answered about a waiter who has left, so that it does not stop the line for good. */
  #giveUpDecision(line: Line): void {
    if (line.deciding === undefined || !isGone(line.deciding)) return;
    line.deciding = undefined;
    line.decidingSince = never;
  }

  /** Handles events that are due before their timer: after sleep, or if the clock was set forward. */
  #catchUp(now: number): void {
    const event = this.#events.first();
    if (event !== undefined && event.at <= now) this.#serveDue(now);
  }

  /** Sets the timer while calls wait; it would keep an idle process alive. The next call handles what is due then. */
  #setAlarm(now: number): void {
    const next = this.pending > 0 ? this.#events.first() : undefined;
    this.#alarm.set(next?.at ?? never, now);
  }

  #reject(waiter: Waiter, reason: unknown): void {
    if (isGone(waiter)) return;
    this.#leave(waiter);
    waiter.reject(reason);
  }

  #leave(waiter: Waiter, isServed = false): void {
    waiter.line.remove(waiter, isServed);
    if (waiter.event !== undefined) this.#events.remove(waiter.event);
    waiter.unlisten?.();
    this.pending -= 1;
    if (this.pending === 0) this.#rest();
    this.#reports.note(waiter.line);
  }

  /** Stops listening to other tabs and to the network: no call waits. */
  #rest(): void {
    this.#budget?.rest();
    this.#unlisten?.();
    this.#unlisten = undefined;
    if (this.isIdle) this.onIdle?.();
  }

  /** Removes a line without waiters; a paused one when the pause is over. */
  #remove(line: Line, now: number): void {
    const isPaused = line.pausedUntil > now;
    this.#wake(line, isPaused ? line.pausedUntil : never);
    this.#budget?.leave(line.key);
    if (!isPaused && this.#lines.get(line.key) === line) this.#lines.delete(line.key);
  }
}

/** Returns whether a waiter has left its line: it was let through, or rejected. */
const isGone = (waiter: Waiter) => waiter.rank === undefined;

const tooMuch = (cost: Costs, limit: number) =>
  new TollgateError(
    "invalid_cost",
    `cost: ${inWords(cost)} can never fit; the policy takes ${limit} at the most`,
  );

const tooLong = () => new TollgateError("max_wait", "maxWait: the call would wait longer");

const queueFull = (maxQueue: number) =>
  new TollgateError("queue_full", `maxQueue: ${maxQueue} calls are waiting already`);
