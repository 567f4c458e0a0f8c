import { warnOnce } from "../guard/warnings.ts";
import type { Timer } from "../throttle/alarm.ts";
import type { Key } from "../types.ts";
import type { Delivered } from "./delivered.ts";
import type { BudgetLimiter, BudgetReservation } from "./limiter.ts";
import type { Amounts } from "./meters.ts";
import type { Use } from "./prices.ts";

/** The part of a budget that a charge uses. */
export interface ChargeSetting {
  readonly limiter: BudgetLimiter;
  readonly timer: Timer;
  /** How long the reservation lasts, in milliseconds. */
  readonly ttl: number;
  readonly waitUntil: ((promise: Promise<unknown>) => void) | undefined;
  /** Called when the amount of a key that was not used is free again. */
  readonly onFree: (key: Key) => void;
}

/** The reservation of a call, and what it reserved. */
export interface OpenCall {
  readonly key: Key;
  readonly reservation: BudgetReservation;
  readonly reserved: Amounts | undefined;
  /** The estimated tokens of the input: the least that a call costs that has begun. */
  readonly inputTokens: number;
  readonly delivered: Delivered;
  /** Returns the amounts of a use. */
  readonly amounts: (use: Use) => Amounts | undefined;
}

/** How often a reservation is extended while nobody reads the response: its reader may have forgotten it. */
const mostUnread = 10;

/** How often a charge is stored again that the limiter failed to store, and the first pause. */
const [mostStores, firstPause] = [4, 1_000];

/** The charge of one call: its reservation is extended while the call runs, and settled once. */
export class Charge {
  readonly delivered: Delivered;
  /** True while the caller waits for the provider. */
  isAwaited = true;
  readonly #setting: ChargeSetting;
  readonly #call: OpenCall;
  #unread = 0;
  #isClosed = false;
  #stop: () => void;
  /** Called when the charge is stored, or never will be. */
  #onStored = (): void => {};

  constructor(setting: ChargeSetting, call: OpenCall) {
    this.#setting = setting;
    this.#call = call;
    this.delivered = call.delivered;
    this.#stop = this.#later();
    const { waitUntil } = setting;
    // From the beginning: a Worker whose visitor leaves has to live on to settle.
    waitUntil?.(new Promise<void>((resolve) => (this.#onStored = resolve)));
  }

  /** Charges a use. */
  settle(use: Use): Promise<void> {
    return this.#close(this.#call.amounts(use));
  }

  /** Charges all that was reserved: the use is unknown. */
  settleInFull(): Promise<void> {
    return this.#close(undefined);
  }

  /** Charges what was delivered, or nothing if the call failed before any output. */
  settleDelivered(): Promise<void> {
    const { delivered, inputTokens } = this.#call;
    if (delivered.hasFailed && delivered.isEmpty) return this.cancel();
    return this.settle(delivered.use(inputTokens));
  }

  /** Charges nothing. */
  cancel(): Promise<void> {
    return this.#close(0);
  }

  /** Settles once. The call does not fail if that fails: the reservation is charged at its end. */
  #close(used: Amounts | 0 | undefined): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#isClosed = true;
    this.#stop();
    const { onFree } = this.#setting;
    const first = this.#store(used).finally(() => onFree(this.#call.key));
    first.catch(() => this.#storeAgain(used)).finally(this.#onStored);
    return first.catch(() => {});
  }

  async #store(used: Amounts | 0 | undefined): Promise<void> {
    const { reservation } = this.#call;
    const settlement = await reservation.settle(used as Readonly<Record<string, number>> | 0 | undefined);
    if (settlement === "expired") await this.#charge(used, this.#call.reserved);
    if (settlement === "evicted") await this.#charge(used, {});
  }

  /** Charges what was used beyond an amount that was charged when the reservation ended. */
  async #charge(used: Amounts | 0 | undefined, charged: Amounts = {}): Promise<void> {
    if (used === 0) return;
    for (const [name, amount] of Object.entries(used ?? {})) {
      const more = amount - (charged[name as keyof Amounts] ?? 0);
      if (more > 0) await this.#setting.limiter.inc(this.#call.key, more, name);
    }
  }

  async #storeAgain(used: Amounts | 0 | undefined): Promise<void> {
    for (let count = 1; count < mostStores; count += 1) {
      await new Promise<void>((resolve) => this.#setting.timer(resolve, firstPause * 2 ** (count - 1)));
      try {
        await this.#store(used);
        return;
      } catch (error) {
        if (count === mostStores - 1)
          warnOnce("budget", `a call could not be settled, so it is charged as reserved: ${error}`);
      }
    }
  }

  /** Extends the reservation when half of its time is over. */
  #later(): () => void {
    const { timer, ttl } = this.#setting;
    return timer(() => this.#extend(), Math.max(Math.floor(ttl / 2), 1));
  }

  async #extend(): Promise<void> {
    this.#unread = this.isAwaited ? 0 : this.#unread + 1;
    if (this.#isClosed || this.#unread > mostUnread) return;
    this.#stop = this.#later();
    try {
      await this.#call.reservation.extend(this.#setting.ttl);
    } catch {
      // The next one comes before the reservation ends.
    }
  }
}
