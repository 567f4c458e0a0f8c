import type { Awaitable } from "../guard/types.ts";
import { warnOnce } from "../guard/warnings.ts";
import type { Timer } from "../throttle/alarm.ts";
import type { Costs, Key } from "../types.ts";
import type { Delivered, Tokens } from "./delivered.ts";
import type { BudgetLimiter, BudgetReservation } from "./limiter.ts";
import type { Amounts } from "./meters.ts";
import type { ModelUsage } from "./usage.ts";

/** A charge that was made. */
export interface BudgetCharge {
  /** The key whose budget it is. */
  readonly key: Key;
  /** The name of the model. */
  readonly model: string;
  /** What was used; `undefined` if that is unknown, so that it was charged as reserved. */
  readonly usage: ModelUsage | undefined;
  /** The price in millionths of a dollar; `undefined` without prices. */
  readonly usd: number | undefined;
  /** The id of the call's reservation. */
  readonly reservation: string;
}

/** What an aborted call costs: what it had reserved, or what was delivered. */
export type OnAbort = "reserved" | "delivered";

/** The part of a budget that a charge uses. */
export interface ChargeSetting {
  readonly limiter: BudgetLimiter;
  readonly timer: Timer;
  /** How long the reservation lasts, in milliseconds. */
  readonly ttl: number;
  readonly onAbort: OnAbort | undefined;
  readonly onCharge: ((charge: BudgetCharge) => Awaitable<void>) | undefined;
  readonly waitUntil: ((promise: Promise<unknown>) => void) | undefined;
  /** Called when the amount of a key that was not used is free again. */
  readonly onFree: (key: Key) => void;
  /** Called after a charge of a key. */
  readonly onCharged: ((key: Key) => Promise<void>) | undefined;
}

/** The reservation of a call, and what it reserved. */
export interface OpenCall {
  readonly key: Key;
  readonly model: string;
  readonly reservation: BudgetReservation;
  readonly reserved: Amounts | undefined;
  /** The price of what was reserved; `undefined` without prices. */
  readonly reservedUsd: number | undefined;
  /** Whether the reserved price is one of its own: what is unknown then costs that. */
  readonly hasOwnPrice: boolean;
  /** The estimated tokens: those of the input are the least that a call costs that has begun. */
  readonly estimated: Tokens;
  readonly delivered: Delivered;
  /** Returns the amounts of a usage. */
  readonly amounts: (usage: ModelUsage) => Amounts | undefined;
  /** Returns the price of a usage; `undefined` without prices. */
  readonly usd: (usage: ModelUsage) => number | undefined;
}

/** A use to charge: without amounts all that was reserved, and 0 for nothing. */
interface Used {
  readonly usage?: ModelUsage | undefined;
  readonly usd?: number | undefined;
  readonly amounts: Amounts | 0 | undefined;
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
  /** True if the provider goes on after the caller has gone. */
  isInBackground = false;
  readonly #setting: ChargeSetting;
  readonly #call: OpenCall;
  #unread = 0;
  #isClosed = false;
  #stop: () => void;
  #settlement: unknown;
  #rest: [string, number][] | undefined;
  /** Called when the charge is stored, or never will be. */
  #onEnd = (): void => {};

  constructor(setting: ChargeSetting, call: OpenCall) {
    this.#setting = setting;
    this.#call = call;
    this.delivered = call.delivered;
    this.#stop = this.#later();
    const { waitUntil } = setting;
    // From the beginning: a Worker whose visitor leaves has to live on to settle.
    waitUntil?.(new Promise<void>((resolve) => (this.#onEnd = resolve)));
  }

  /** Charges all that was reserved: the use is unknown. */
  settleInFull(): Promise<void> {
    return this.#close({ usd: this.#call.reservedUsd, amounts: undefined });
  }

  /** Charges what was delivered, or nothing if the call failed before any output. If that is unknown, what was reserved. */
  settleDelivered(): Promise<void> {
    const { delivered, estimated, hasOwnPrice } = this.#call;
    if (delivered.hasFailed && delivered.isEmpty) return this.cancel();
    // A stream that breaks is not the end of a job in the background.
    if (delivered.hasWrong || (this.isInBackground && !delivered.isFinal))
      return this.settleAtLeastReserved();
    const isKnown = delivered.isKnown || (delivered.hasUses && !hasOwnPrice);
    return isKnown ? this.#settle(estimated) : this.settleInFull();
  }

  /**
   * Charges a call that the caller ended, by the option `onAbort`: the provider may have done more than it delivered. By
   * default, what was delivered if something was.
   */
  settleAborted(): Promise<void> {
    const { delivered, estimated } = this.#call;
    if (delivered.isFinal) return this.settleDelivered();
    const by = this.isInBackground ? "reserved" : this.#setting.onAbort;
    if (by === "reserved" || (by === undefined && !delivered.hasText)) return this.settleAtLeastReserved();
    return this.#settle({ ...estimated, outputTokens: 0 });
  }

  /** Charges what was reserved, or what was delivered where that is more. */
  settleAtLeastReserved(): Promise<void> {
    const { delivered, reserved, reservedUsd = 0, estimated } = this.#call;
    const used = delivered.isEmpty ? undefined : this.#used(estimated);
    if (used === undefined || reserved === undefined) return this.settleInFull();
    const amounts: Amounts = { ...reserved };
    for (const [name, amount] of Object.entries((used.amounts ?? {}) as Amounts) as [keyof Amounts, number][])
      amounts[name] = Math.max(amount, reserved[name] ?? 0);
    const usd = used.usd === undefined ? undefined : Math.max(used.usd, reservedUsd);
    return this.#close({ usd, amounts });
  }

  /** Charges nothing. */
  cancel(): Promise<void> {
    return this.#close({ amounts: 0 });
  }

  /** Leaves the call open that goes on at the provider. It is charged as reserved if nobody asks for its result. */
  leave(): void {
    this.isAwaited = false;
    this.#unread = 0;
    this.#onEnd();
  }

  #settle(estimated: Tokens): Promise<void> {
    const used = this.#used(estimated);
    return used === undefined ? this.settleInFull() : this.#close(used);
  }

  /** Returns the use; `undefined` if its price is unknown. */
  #used(estimated: Tokens): Used | undefined {
    const { delivered, amounts, usd } = this.#call;
    try {
      const usage = delivered.usage(estimated);
      return { usage, usd: usd(usage), amounts: amounts(usage) };
    } catch (error) {
      warnOnce("price", `a call has no price, so it is charged as reserved: ${error}`);
      return undefined;
    }
  }

  /** Settles once. The call does not fail if that fails: the reservation is charged at its end. */
  #close(used: Used): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#isClosed = true;
    this.#stop();
    const first = this.#store(used);
    first.catch(() => this.#storeAgain(used)).finally(this.#onEnd);
    return first.catch(() => {});
  }

  async #store(used: Used): Promise<void> {
    try {
      // It may have been closed, and only a part of the rest be charged.
      this.#settlement ??= await this.#call.reservation.settle(used.amounts as Costs);
      this.#rest ??= restOf(used, this.#call, this.#settlement);
      await this.#chargeRest(this.#rest);
    } finally {
      this.#setting.onFree(this.#call.key);
    }
    await this.#announce(this.#settlement === "expired" ? this.#orReserved(used) : used);
    await this.#setting.onCharged?.(this.#call.key);
  }

  async #chargeRest(rest: [string, number][]): Promise<void> {
    for (let next = rest[0]; next !== undefined; next = rest[0]) {
      const [name, amount] = next;
      await this.#setting.limiter.inc(this.#call.key, amount, name);
      rest.shift();
    }
  }

  /** Returns the use that was charged if what was reserved had been charged before. */
  #orReserved(used: Used): Used {
    const { reservedUsd } = this.#call;
    if (used.amounts === 0) return { usd: reservedUsd, amounts: undefined };
    return { ...used, usd: used.usd === undefined ? undefined : Math.max(used.usd, reservedUsd ?? 0) };
  }

  async #storeAgain(used: Used): Promise<void> {
    for (let count = 1; count < mostStores; count += 1) {
      await new Promise<void>((resolve) => this.#setting.timer(resolve, firstPause * 2 ** (count - 1)));
      try {
        await this.#store(used);
        return;
      } catch (error) {
        if (count < mostStores - 1) continue;
        warnOnce("budget", `a call could not be settled, so it is charged as reserved: ${error}`);
        await this.#announce({ usd: this.#call.reservedUsd, amounts: undefined });
      }
    }
  }

  /** Tells the caller what was charged. The call does not fail for that. */
  async #announce({ usage, usd, amounts }: Used): Promise<void> {
    if (amounts === 0) return;
    const { key, model, reservation } = this.#call;
    try {
      await this.#setting.onCharge?.({ key, model, usage, usd, reservation: reservation.id });
    } catch (error) {
      warnOnce("onCharge", `onCharge failed: ${error}`);
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

/** Returns what is left to charge, by policies, after a reservation that had expired, or whose key had been evicted. */
function restOf({ amounts }: Used, { reserved = {} }: OpenCall, settlement: unknown): [string, number][] {
  if (amounts === 0) return [];
  const charged = settlement === "expired" ? reserved : settlement === "evicted" ? {} : undefined;
  if (charged === undefined) return [];
  return (Object.entries(amounts ?? reserved) as [keyof Amounts, number][])
    .map(([name, amount]): [string, number] => [name, amount - (charged[name] ?? 0)])
    .filter(([, amount]) => amount > 0);
}
