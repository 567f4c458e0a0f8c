import { checkKey, copiedOptions } from "../checks.ts";
import { schema } from "../core/generated.ts";
import { inWords, TollgateError } from "../error.ts";
import { RateLimiter } from "../limiter.ts";
import type { Reservation } from "../reservation.ts";
import type { Costs, Decision, Key, Policies, Policy } from "../types.ts";
import { Alarm, never, platformTimer, type Timer } from "./alarm.ts";
import { checkAcquireOptions, checkFromZero, checkThrottleOptions, runNames } from "./checks.ts";
import { defaultMaxHold, type FetchOptions, fetchThrough } from "./fetch.ts";
import { Heap } from "./heap.ts";
import { type Event, Line, type Waiter } from "./line.ts";
import { changedPlaces, type Place } from "./places.ts";
import type { Fetch, FetchResponse, Signal } from "./platform.ts";
import { checkRun, type Running, type RunOptions, running, runOnly } from "./run.ts";
import { type Held, SharedBudget } from "./shared.ts";
import { Signals } from "./signals.ts";
import { type WrapOptions, type Wrapped, wrapped } from "./wrap.ts";

/** How a throttle is set up. */
export interface ThrottleOptions extends FetchOptions {
  /** Milliseconds since the epoch; `Date.now` by default. */
  readonly clock?: (() => number) | undefined;
  /** Starts a timer and answers how to stop it; `setTimeout` by default. For tests, beside `clock`. */
  readonly timer?: Timer | undefined;
  /** How many may wait at once; no bound by default. */
  readonly maxQueue?: number | undefined;
  /** A name under which all tabs and workers of this origin share one budget, in IndexedDB. */
  readonly shared?: string | undefined;
  /** Called when the number of those who wait has changed. */
  readonly onChange?: ((change: ThrottleChange) => void) | undefined;
}

/** What has changed in a throttle. */
export interface ThrottleChange {
  /** How many wait now. */
  readonly pending: number;
}

/** What is asked for. */
export interface AcquireOptions {
  /** Whose budget; one for all by default. */
  readonly key?: Key | undefined;
  /** How much; 1 by default. */
  readonly cost?: number | undefined;
  /** Gives up when it is aborted. */
  readonly signal?: Signal | undefined;
  /** Gives up when it has waited, or would have to wait, for longer than that many milliseconds. */
  readonly maxWait?: number | undefined;
  /** Who goes first among those who wait; 0 by default, higher goes before. */
  readonly priority?: number | undefined;
  /** Called with its place while it waits, at first and whenever that changes. */
  readonly onChange?: ((place: Place) => void) | undefined;
}

/**
 * Waits instead of denying: each `acquire` is let through when the policy allows it, in order of arrival.
 *
 * @example
 * ```ts
 * import { Throttle } from "tollgate";
 *
 * const throttle = new Throttle({ algorithm: "token_bucket", capacity: 5, refillRate: 2 });
 * await throttle.acquire({ key: "search", maxWait: 10_000 });
 * const save = throttle.wrap(async (text: string) => text.length);
 * console.log(await save("hello"));
 * ```
 */
export class Throttle {
  readonly #clock: () => number;
  readonly #limiter: RateLimiter;
  readonly #take: (key: Key, cost: number) => Decision | Promise<Decision | Held>;
  readonly #budget: SharedBudget | undefined;
  readonly #maxQueue: number;
  readonly #options: ThrottleOptions;
  readonly #lines = new Map<Key, Line>();
  readonly #events = new Heap<Event>((one, other) => one.at < other.at);
  readonly #alarm: Alarm;
  readonly #signals = new Signals<Waiter>((waiters, reason) => this.#turnAway(waiters, reason));
  /** The lines in which places may have changed since that was last told. */
  readonly #changed = new Set<Line>();
  #pending = 0;
  /** How much work of each key is running. */
  readonly #running = new Map<Key, number>();
  /** The error of `acquire` where a policy counts only what runs. */
  readonly #runOnly: TollgateError | undefined;
  /** How many waited when that was last told. */
  #told = 0;

  constructor(policies: Policies, options: ThrottleOptions = {}) {
    checkThrottleOptions(options);
    const { clock = Date.now, timer = platformTimer, maxQueue = never, shared } = options;
    const free = waiting(policies);
    const limiter = new RateLimiter(free, { clock });
    if (shared === undefined) this.#take = (key, cost) => limiter.hit(key, cost);
    else {
      const { maxHold = defaultMaxHold } = options;
      const budget = new SharedBudget(shared, free, clock, limiter, maxHold, () => this.#wakeAll());
      this.#take = (key, cost) => budget.take(key, cost);
      this.#budget = budget;
    }
    this.#limiter = limiter;
    this.#runOnly = runOnly(limiter.policies);
    this.#clock = clock;
    this.#maxQueue = maxQueue;
    this.#options = options;
    this.#alarm = new Alarm(timer, (due) => this.#ring(due));
  }

  /** How many wait. */
  get pending(): number {
    return this.#pending;
  }

  /** Waits until the policy allows it, and answers the decision. A cost that can never fit is refused at once. */
  acquire(options: AcquireOptions = {}): Promise<Decision> {
    return this.#wait(options, undefined);
  }

  /**
   * Waits as `acquire` does, runs the work, and settles what it reserved: in full, or what the work says it used. Its
   * place under a concurrency policy is free again when it ends.
   *
   * @example
   * ```ts
   * import { Throttle } from "tollgate";
   *
   * const throttle = new Throttle({ algorithm: "concurrency", limit: 4 });
   * const pages = ["/a", "/b", "/c"];
   * const sizes = await Promise.all(pages.map((page) => throttle.run(async () => page.length)));
   * console.log(sizes); // => [2, 2, 2]
   * ```
   */
  async run<Result>(
    work: (running: Running) => Result | PromiseLike<Result>,
    options: RunOptions = {},
  ): Promise<Result> {
    const { ttl = schema.maxTtl, cancelOnThrow = false, cost, ...rest } = copiedOptions(options, runNames);
    checkRun(work, options, this.#budget !== undefined);
    const { key = "" } = rest;
    let reservation: Reservation | undefined;
    await this.#wait(rest, cost, (costs) => {
      reservation = this.#limiter.reserve(key, costs, { ttl });
      // At once: who comes next in the same turn may wait for it to end.
      if (reservation.allowed) this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
      return reservation.decision;
    });
    let isOpen = true;
    return running(work, reservation as unknown as Reservation, cancelOnThrow, () => {
      if (isOpen) this.#ended(key);
      isOpen = false;
    });
  }

  /** Waits until the policies allow it; `take` takes it instead of a hit. */
  #wait(
    options: AcquireOptions,
    costs: Costs | undefined,
    take?: (costs: Costs) => Decision,
  ): Promise<Decision> {
    return new Promise((resolve, reject) => {
      checkAcquireOptions(options);
      if (take === undefined && this.#runOnly !== undefined) throw this.#runOnly;
      const { key = "", signal, maxWait = never, priority = 0, onChange } = options;
      const cost = costs ?? options.cost ?? 1;
      signal?.throwIfAborted();
      checkKey(key);
      // Whoever is ahead, what can never fit is not made to wait for it.
      if (cost !== 1) this.#checkFits(key, cost);
      const now = this.#clock();
      this.#catchUp(now);
      const [line, deadline] = [this.#line(key), now + maxWait];
      // Written out: what is added later, or spread, takes more memory.
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
      this.#enter(waiter, signal, now);
      if (onChange === undefined || isGone(waiter)) return;
      line.listeners.set(waiter, { tell: onChange });
      this.#change(line);
    });
  }

  /** The same function, each call of which waits its turn; or, for events of a page, only the leading or trailing ones. */
  wrap<Args extends unknown[], Result>(
    work: (...args: Args) => Result | PromiseLike<Result>,
    options: WrapOptions = {},
  ): Wrapped<Args, Result> {
    return wrapped(this, work, options);
  }

  /** A `fetch` that waits its turn, by origin, and heeds what servers say of their limits. */
  fetch(...[input, init]: Parameters<Fetch>): Promise<FetchResponse> {
    return fetchThrough(this, this.#clock, this.#options, input, init);
  }

  /** Lets nobody through for a while, whatever the policy says; with a shared budget, in no tab. */
  hold(key: Key, milliseconds: number): void {
    checkKey(key);
    checkFromZero({ milliseconds }, "milliseconds");
    const line = this.#line(key);
    const now = this.#clock();
    const until = now + milliseconds;
    if (until > line.heldUntil) {
      line.heldUntil = until;
      this.#budget?.hold(key, until, milliseconds);
    }
    this.#wake(line, line.heldUntil);
    this.#setAlarm(now);
  }

  /** Turns everyone who waits away. */
  clear(): void {
    const now = this.#clock();
    for (const line of this.#lines.values()) {
      for (let waiter = line.first(); waiter !== undefined; waiter = line.first())
        this.#leave(waiter, new TollgateError("cleared", "clear() was called"));
      this.#forget(line, now);
    }
    this.#setAlarm(now);
  }

  /** Turns everyone who waits away, and lets go of its memory, its database and its channel to other tabs. */
  [Symbol.dispose](): void {
    this.#limiter[Symbol.dispose]();
    this.#budget?.close();
    this.clear();
    for (const line of this.#lines.values()) this.#wake(line, never);
    this.#lines.clear();
    this.#setAlarm(0);
  }

  #checkFits(key: Key, cost: Costs): void {
    const { retryAfter, limit } = this.#limiter.peek(key, cost);
    if (retryAfter === never) throw tooMuch(cost, limit);
  }

  #line(key: Key): Line {
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = new Line(key);
      this.#lines.set(key, line);
    }
    return line;
  }

  #enter(waiter: Waiter, signal: AbortSignal | undefined, now: number): void {
    const { line, deadline } = waiter;
    line.add(waiter);
    this.#pending += 1;
    this.#change(line);
    const isFirst = line.first() === waiter;
    if (isFirst) this.#serve(line, now);
    if (isGone(waiter)) return;
    // The one being asked for is not waiting yet: whether it must is what is being asked.
    if (this.#pending > this.#maxQueue && !(isFirst && line.asking)) {
      const reason = queueFull(this.#maxQueue);
      // One that was first has put off the next.
      if (isFirst) this.#turnAway([waiter], reason);
      else this.#leave(waiter, reason);
      return;
    }
    if (deadline < never) waiter.event = this.#note(deadline, line, waiter);
    if (signal !== undefined) this.#listen(signal, waiter);
    if (isFirst || deadline < never) this.#setAlarm(this.#clock());
  }

  /** A signal that cannot be listened to must not leave a waiter behind that nobody waits for. */
  #listen(signal: AbortSignal, waiter: Waiter): void {
    try {
      waiter.forget = this.#signals.add(signal, waiter);
    } catch (error) {
      this.#turnAway([waiter], error);
    }
  }

  /** Turns some away, and serves whoever comes after them: it may fit where they did not. */
  #turnAway(waiters: readonly Waiter[], reason: unknown): void {
    for (const waiter of waiters) this.#leave(waiter, reason);
    for (const line of new Set(waiters.map(({ line }) => line))) this.#serve(line);
    this.#setAlarm(this.#clock());
  }

  /** Lets through whoever fits, in order, and notes when the next one might. */
  #serve(line: Line, now = this.#clock()): void {
    while (!line.asking) {
      const waiter = line.first();
      if (waiter === undefined) {
        this.#forget(line, now);
        return;
      }
      if (Math.max(Math.min(now, line.askingSince), line.heldUntil) > waiter.deadline) {
        this.#leave(waiter, tooLong());
        continue;
      }
      if (line.heldUntil > now) {
        this.#wake(line, line.heldUntil);
        return;
      }
      const answer = this.#ask(line.key, waiter);
      if (answer === undefined) continue;
      if (answer instanceof Promise) {
        line.asking = true;
        line.askingSince = Math.min(line.askingSince, now);
        this.#await(line, waiter, answer);
      } else if (!this.#settle(line, waiter, answer)) return;
    }
  }

  #ask(key: Key, waiter: Waiter): Decision | Promise<Decision | Held> | undefined {
    try {
      return waiter.take?.(waiter.cost) ?? this.#take(key, waiter.cost as number);
    } catch (error) {
      this.#leave(waiter, error);
      return undefined;
    }
  }

  async #await(line: Line, waiter: Waiter, asked: Promise<Decision | Held>): Promise<void> {
    let isTurn = false;
    try {
      const answer = await asked;
      line.asking = false;
      if ("heldUntil" in answer) {
        line.heldUntil = Math.max(line.heldUntil, answer.heldUntil);
        isTurn = true;
      } else {
        // What was taken for one who has left meanwhile goes to the next, if it is enough.
        const next = isGone(waiter) && answer.allowed ? line.first() : waiter;
        // Under a shared budget costs are numbers.
        if (next !== undefined && Number(next.cost) <= Number(waiter.cost)) this.#settle(line, next, answer);
      }
    } catch (error) {
      line.asking = false;
      this.#leave(waiter, error);
    }
    isTurn ||= line.outdated || line.wakeAt <= this.#clock() || line.wakeAt === never;
    line.outdated = false;
    if (isTurn) this.#serve(line);
    if (!line.asking) this.#answered(line);
    this.#setAlarm(this.#clock());
  }

  /** The store has nothing more to say for now: who has waited too long meanwhile goes. */
  #answered(line: Line): void {
    line.askingSince = never;
    if (line.overdue.size === 0) return;
    for (const waiter of line.overdue) this.#leave(waiter, tooLong());
    this.#serve(line);
  }

  /** Lets one through, or notes when it might be. Says whether it is the next one's turn. */
  #settle(line: Line, waiter: Waiter, decision: Decision): boolean {
    if (isGone(waiter)) return true;
    const at = this.#clock() + decision.retryAfter;
    if (decision.allowed) {
      this.#done(waiter);
      waiter.resolve(decision);
    } else if (at === never) {
      this.#leave(waiter, tooMuch(waiter.cost, decision.limit));
    } else if (at > waiter.deadline && !this.#running.has(line.key)) {
      // Work that is running may end sooner than its reservation.
      this.#leave(waiter, tooLong());
    } else {
      this.#wake(line, at);
      return false;
    }
    return true;
  }

  /** Has the line served again then, and at no other time. */
  #wake(line: Line, at: number): void {
    if (line.wakeAt === at) return;
    this.#change(line);
    if (line.event !== undefined) this.#events.remove(line.event);
    line.event = at === never ? undefined : this.#note(at, line, undefined);
  }

  #note(at: number, line: Line, waiter: Waiter | undefined): Event {
    const event = { at, line, waiter, place: -1 };
    this.#events.push(event);
    return event;
  }

  #wakeAll(): void {
    for (const line of this.#lines.values()) {
      line.outdated = line.asking;
      this.#serve(line);
    }
    this.#setAlarm(this.#clock());
  }

  /** What is due is done: a line is served again, or one who waited long enough is turned away. */
  #ring(due: number): void {
    // A clock that stepped back must not make anyone wait again for what the timer has waited for.
    const until = Math.max(due, this.#clock());
    // Taken out first: what is noted on the way waits for the timer, or a clock that stepped back would keep us here.
    for (const event of this.#due(until)) {
      const { at, line, waiter } = event;
      // Overtaken on the way: the line is to be served at another time, or the waiter has gone.
      if (waiter === undefined ? line.event !== event : isGone(waiter)) continue;
      if (waiter === undefined) line.event = undefined;
      if (line.heldUntil <= at) line.heldUntil = 0;
      this.#serve(line);
      if (waiter !== undefined) this.#giveUp(line, waiter);
    }
    this.#setAlarm(this.#clock());
  }

  /** Takes out all events that are due by then. */
  #due(until: number): Event[] {
    const due: Event[] = [];
    for (let event = this.#events.first(); event && event.at <= until; event = this.#events.first()) {
      due.push(event);
      this.#events.remove(event);
    }
    return due;
  }

  /** Its time is up, and it was not let through in the last moment either. */
  #giveUp(line: Line, waiter: Waiter): void {
    if (isGone(waiter)) return;
    // A slow store is no reason to turn away whoever it may allow.
    if (line.asking) line.overdue.add(waiter);
    else {
      this.#leave(waiter, tooLong());
      this.#serve(line);
    }
  }

  /** After sleep or a clock set forward, waits may be over before their timer is. */
  #catchUp(now: number): void {
    const event = this.#events.first();
    if (event !== undefined && event.at <= now) this.#ring(now);
  }

  #setAlarm(now: number): void {
    this.#alarm.set(this.#events.first()?.at ?? never, now);
  }

  #leave(waiter: Waiter, reason: unknown): void {
    if (isGone(waiter)) return;
    this.#done(waiter);
    waiter.reject(reason);
  }

  #done(waiter: Waiter): void {
    waiter.line.remove(waiter);
    if (waiter.event !== undefined) this.#events.remove(waiter.event);
    waiter.forget?.();
    this.#pending -= 1;
    this.#change(waiter.line);
  }

  /** Notes that places may have changed. Several changes in a row are told once, when the code that made them ends. */
  #change(line: Line): void {
    if (!line.listeners.size && !this.#options.onChange) return;
    if (!this.#changed.size) queueMicrotask(() => this.#tell());
    this.#changed.add(line);
  }

  #tell(): void {
    const pending = this.#pending;
    const news: (() => void)[] = [];
    if (pending !== this.#told) news.push(() => this.#options.onChange?.({ pending }));
    this.#told = pending;
    for (const line of this.#changed)
      news.push(
        ...changedPlaces(line, this.#budget || this.#runOnly ? undefined : this.#limiter, this.#clock()),
      );
    this.#changed.clear();
    // All is worked out by now: whoever is told may use the throttle. It may also throw, which is not our error.
    for (const tell of news) (async () => tell())().catch(console.warn);
  }

  /** Work of a key has ended: what it had reserved may let others through. */
  #ended(key: Key): void {
    const left = (this.#running.get(key) ?? 1) - 1;
    if (left === 0) this.#running.delete(key);
    else this.#running.set(key, left);
    const line = this.#lines.get(key);
    if (line === undefined) return;
    this.#serve(line);
    this.#setAlarm(this.#clock());
  }

  /** Frees a line that nobody waits in; one that is held when that is over, since what a server asked for still holds. */
  #forget(line: Line, now: number): void {
    const isHeld = line.heldUntil > now;
    this.#wake(line, isHeld ? line.heldUntil : never);
    if (!isHeld && this.#lines.get(line.key) === line) this.#lines.delete(line.key);
  }
}

/** Whether a waiter has left its line: it was let through, or turned away. */
const isGone = (waiter: Waiter) => waiter.rank === undefined;

const tooMuch = (cost: Costs, limit: number) =>
  new TollgateError(
    "invalid_cost",
    `cost: ${inWords(cost)} can never fit; the policy takes ${limit} at the most`,
  );

const tooLong = () => new TollgateError("max_wait", "maxWait: its turn would not come in time");

const queueFull = (maxQueue: number) =>
  new TollgateError("queue_full", `maxQueue: ${maxQueue} may wait, and as many do`);

/** The same policies, under which a denied hit changes nothing: who waits must not push its own turn away. */
function waiting(policies: Policies): Policies {
  // What is no policy is left to the limiter, which says so.
  const free = (policy: Policy): Policy =>
    "scale" in Object(policy) ? ({ ...policy, denied: "free" } as Policy) : policy;
  return Array.isArray(policies) ? policies.map(free) : free(policies as Policy);
}
