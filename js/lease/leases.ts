import { isAllowed, type Numbers, withoutLease } from "../wasm/decision-numbers.ts";

/**
 * The leases of a holder in wasm (`bindings/lease`, which documents the methods). Times are milliseconds of the holder's
 * own clock.
 * @internal
 */
export interface LeaseCore {
  denied(key: string, cost: number, now: number): Numbers | undefined;
  hit(key: string, cost: number, now: number): string;
  spend(key: string, cost: number, now: number): Numbers | undefined;
  replied(key: string, cost: number, reply: string, renews: boolean, sentAt: number, now: number): number;
  failed(key: string): void;
  giveBack(key: string, sentAt: number, now: number): string | undefined;
}

/**
 * Sends a hit to the issuer. With a report it is a renewal: the lease is reported and renewed, or given back. Resolves to
 * the numbers of the decision, followed by the lease.
 * @internal
 */
export type AskIssuer = (cost: number, report: string | undefined) => Promise<string>;

/**
 * Keeps work alive that no caller awaits, as `waitUntil` of a Worker does.
 * @internal
 */
export type Background = (work: Promise<unknown>) => void;

/**
 * Ignores errors of work that no caller awaits: renewals, and leases that are given back.
 * @internal
 */
export const unawaited: Background = (work) => void work.catch(() => {});

/** How long a hit waits for the renewal of another request, in milliseconds. */
const renewalWait = 50;

/** The part of its life after which a lease that was not renewed is given back. */
const givenBackAfter = 0.9;

/** The hits of a key that wait for a renewal. */
interface WaitingHits {
  readonly wakes: Set<() => void>;
  /** When the last of them started to wait. */
  since: number;
}

/**
 * The leases of one process: hits on a hot key spend its lease, and the issuer gets a message only to renew it. All state
 * and arithmetic, remembered denials included, are in the core.
 * @internal
 */
export class Leases {
  readonly #core: LeaseCore;
  readonly #now: () => number;
  /** Hits that wait for a renewal, by key; the key with the most recent one is last. */
  readonly #waiting = new Map<string, WaitingHits>();

  constructor(core: LeaseCore, now: () => number) {
    this.#core = core;
    this.#now = now;
  }

  /** Returns the decision of a hit that a remembered denial covers. */
  denied(key: string, cost: number): Numbers | undefined {
    return this.#core.denied(key, cost, this.#now());
  }

  /** Remembers a denial of a hit that was sent at `sentAt`. */
  remember(key: string, cost: number, reply: Numbers, sentAt: number): void {
    this.#core.replied(key, cost, reply, false, sentAt, sentAt);
  }

  /** Decides a hit, from a lease or by the issuer. */
  hit(key: string, cost: number, ask: AskIssuer, background: Background): Numbers | Promise<Numbers> {
    const now = this.#now();
    const step = this.#core.hit(key, cost, now);
    switch (step[0]) {
      case "?":
        return this.ask(key, cost, ask);
      case "+": {
        const renewed = this.#renew(key, cost, step.slice(1), now, ask, background);
        // The renewal must outlive a request that is cancelled, since others wait for it.
        background(renewed.catch(() => {}));
        return renewed;
      }
      case ".":
        return this.#wait(key, cost, ask);
    }
    const end = step.indexOf("+");
    if (end < 0) return step;
    background(this.#renew(key, 0, step.slice(end + 1), now, ask, background).catch(() => {}));
    return step.slice(0, end);
  }

  /** Sends one hit to the issuer, and remembers a denial. */
  async ask(key: string, cost: number, ask: AskIssuer): Promise<Numbers> {
    const sentAt = this.#now();
    const reply = await ask(cost, undefined);
    this.#core.replied(key, cost, reply, false, sentAt, this.#now());
    return this.#orSpent(key, cost, reply);
  }

  /**
   * Reports and renews a lease, with a hit unless `cost` is 0. `sentAt` is when the core made the report: the core knows
   * the reply by it, and a clock that is read again may be later.
   */
  async #renew(
    key: string,
    cost: number,
    report: string,
    sentAt: number,
    ask: AskIssuer,
    background: Background,
  ): Promise<Numbers> {
    let life: number;
    let reply: string;
    try {
      reply = await ask(cost, report);
      life = this.#core.replied(key, cost, reply, true, sentAt, this.#now());
      if (life < 0) throw new Error(`this is not a decision with a lease: ${reply}`);
    } catch (error) {
      this.#core.failed(key);
      throw error;
    } finally {
      this.#wake(key);
    }
    if (life > 0) background(this.#giveBackLater(key, sentAt, life, ask).catch(() => {}));
    const decision = withoutLease(reply);
    return cost > 0 ? this.#orSpent(key, cost, decision) : decision;
  }

  /** Returns the decision, or allows from the lease what the issuer denied: the lease counts as used there. */
  #orSpent(key: string, cost: number, decision: Numbers): Numbers {
    if (isAllowed(decision)) return decision;
    return this.#core.spend(key, cost, this.#now()) ?? decision;
  }

  /**
   * Waits for a pending renewal, and then spends the lease or sends the hit. The wait is short: in a Worker the request
   * that sent the renewal may be cancelled, and then no waiting hit is woken.
   */
  async #wait(key: string, cost: number, ask: AskIssuer): Promise<Numbers> {
    const waiting = this.#waitingFor(key);
    let stop = () => {};
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, renewalWait);
      waiting.wakes.add(resolve);
      stop = () => {
        clearTimeout(timer);
        waiting.wakes.delete(resolve);
      };
    });
    stop();
    if (waiting.wakes.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
    return this.#core.spend(key, cost, this.#now()) ?? this.ask(key, cost, ask);
  }

  /** Returns the waiting hits of a key, for one that starts to wait now. Drops those of keys whose waits are over. */
  #waitingFor(key: string): WaitingHits {
    const now = this.#now();
    // A hit removes itself, unless its request was cancelled.
    for (const [other, { since }] of this.#waiting) {
      if (Math.abs(now - since) <= 2 * renewalWait) break;
      this.#waiting.delete(other);
    }
    const waiting = this.#waiting.get(key) ?? { wakes: new Set(), since: now };
    waiting.since = now;
    this.#waiting.delete(key);
    this.#waiting.set(key, waiting);
    return waiting;
  }

  #wake(key: string): void {
    const waiting = this.#waiting.get(key);
    this.#waiting.delete(key);
    for (const wake of waiting?.wakes ?? []) wake();
  }

  /** Gives the unspent part of a lease back shortly before its end, unless it is renewed by then. */
  async #giveBackLater(key: string, sentAt: number, life: number, ask: AskIssuer): Promise<void> {
    const rest = Math.max(0, sentAt + life * givenBackAfter - this.#now());
    await new Promise((resolve) => {
      const timer: unknown = setTimeout(resolve, rest);
      // In Node the timer must not keep the process running: the end of the lease charges the rest.
      (timer as { unref?: () => void }).unref?.();
    });
    const report = this.#core.giveBack(key, sentAt, this.#now());
    if (report !== undefined) await ask(0, report).catch(() => {});
  }
}
