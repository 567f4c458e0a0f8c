import { isAllowed, type Numbers, withoutLease } from "./numbers.ts";

/**
 * The arithmetic of leases, in wasm: `bindings/lease`. Times are milliseconds of the holder's own clock.
 * @internal
 */
export interface LeaseCore {
  denied(key: string, cost: number, now: number): Numbers | undefined;
  hit(key: string, cost: number, now: number): string;
  spend(key: string, cost: number, now: number): Numbers | undefined;
  replied(key: string, cost: number, reply: string, renews: boolean, asked: number, now: number): number;
  failed(key: string): void;
  giveBack(key: string, asked: number, now: number): string | undefined;
}

/**
 * Asks the issuer for a hit. With a report it is a renewal: the lease is reported and renewed, or given back. Resolves to
 * the numbers of the decision, with the lease behind them.
 * @internal
 */
export type AskIssuer = (cost: number, report: string | undefined) => Promise<string>;

/**
 * Keeps a piece of work alive that nobody awaits.
 * @internal
 */
export type Background = (work: Promise<unknown>) => void;

/** How long a hit waits for the renewal of another request, in milliseconds. */
const patience = 50;

/** When a lease that was not renewed is given back, as a part of its life. */
const givenBackAfter = 0.9;

/**
 * The leases of one machine: hits on a hot key are allowed from what it holds, and the issuer is asked only to renew that.
 * What is known of a key, also that it was denied a moment ago, and all arithmetic are in the core.
 * @internal
 */
export class Leases {
  readonly #core: LeaseCore;
  readonly #now: () => number;
  /** Hits that wait for a renewal, by key. */
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(core: LeaseCore, now: () => number) {
    this.#core = core;
    this.#now = now;
  }

  /** The decision of a hit that is known to be denied. */
  denied(key: string, cost: number): Numbers | undefined {
    return this.#core.denied(key, cost, this.#now());
  }

  /** Remembers a denial of what was asked at that time. */
  remember(key: string, cost: number, reply: Numbers, asked: number): void {
    this.#core.replied(key, cost, reply, false, asked, asked);
  }

  /** Decides a hit, from what is held or by asking. */
  hit(key: string, cost: number, ask: AskIssuer, background: Background): Numbers | Promise<Numbers> {
    const now = this.#now();
    const step = this.#core.hit(key, cost, now);
    switch (step[0]) {
      case "?":
        return this.ask(key, cost, ask);
      case "+": {
        const renewed = this.#renew(key, cost, step.slice(1), now, ask, background);
        // It goes on if the request that sent it is cancelled: others wait for it.
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

  /** Asks for one hit, and remembers a denial. */
  async ask(key: string, cost: number, ask: AskIssuer): Promise<Numbers> {
    const asked = this.#now();
    const reply = await ask(cost, undefined);
    this.#core.replied(key, cost, reply, false, asked, this.#now());
    return this.#orSpent(key, cost, reply);
  }

  /**
   * Reports and renews a lease, with a hit or none. `asked` is when the core made the report: the core knows the reply by
   * it, and a clock that is read again may be later.
   */
  async #renew(
    key: string,
    cost: number,
    report: string,
    asked: number,
    ask: AskIssuer,
    background: Background,
  ): Promise<Numbers> {
    let life: number;
    let reply: string;
    try {
      reply = await ask(cost, report);
      life = this.#core.replied(key, cost, reply, true, asked, this.#now());
      if (life < 0) throw new Error(`this is not a decision with a lease: ${reply}`);
    } catch (error) {
      this.#core.failed(key);
      throw error;
    } finally {
      this.#wake(key);
    }
    if (life > 0) background(this.#giveBackLater(key, asked, life, ask));
    const decision = withoutLease(reply);
    return cost > 0 ? this.#orSpent(key, cost, decision) : decision;
  }

  /** What the issuer denied may be allowed from what is held: it counts as used there. */
  #orSpent(key: string, cost: number, decision: Numbers): Numbers {
    if (isAllowed(decision)) return decision;
    return this.#core.spend(key, cost, this.#now()) ?? decision;
  }

  /**
   * Waits for a renewal that is under way, but not for long: in a Worker the request that sent it may be cancelled, and
   * then nobody is woken.
   */
  async #wait(key: string, cost: number, ask: AskIssuer): Promise<Numbers> {
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    let forget = () => {};
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, patience);
      waiting.add(resolve);
      forget = () => {
        clearTimeout(timer);
        waiting.delete(resolve);
      };
    });
    forget();
    if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
    return this.#core.spend(key, cost, this.#now()) ?? this.ask(key, cost, ask);
  }

  #wake(key: string): void {
    const waiting = this.#waiting.get(key);
    this.#waiting.delete(key);
    for (const wake of waiting ?? []) wake();
  }

  /** Gives back what is not spent, unless the lease was renewed until then. */
  async #giveBackLater(key: string, asked: number, life: number, ask: AskIssuer): Promise<void> {
    const rest = Math.max(0, asked + life * givenBackAfter - this.#now());
    await new Promise((resolve) => {
      const timer: unknown = setTimeout(resolve, rest);
      // In Node a process need not stay for it: the end of the lease charges what is left.
      (timer as { unref?: () => void }).unref?.();
    });
    const report = this.#core.giveBack(key, asked, this.#now());
    if (report !== undefined) await ask(0, report).catch(() => {});
  }
}
