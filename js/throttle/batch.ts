import { invalidField, TollgateError } from "../errors/error.ts";
import type { AcquireOptions, BasicThrottle } from "./basic-throttle.ts";
import { checkAcquireOptions, checkFromZero } from "./checks.ts";
import type { Delays } from "./delays.ts";

/** The options of `batch`. */
export interface BatchOptions extends AcquireOptions {
  /** How many items one call of the work takes at the most. */
  readonly most: number;
  /** How long an item waits for others before its batch gets in line, in milliseconds; 0 by default. */
  readonly wait?: number | undefined;
}

/** The result of one item: an element of what the work returns; undefined if that is not an array. */
export type BatchResult<Returned> = Awaited<Returned> extends readonly (infer Result)[] ? Result : undefined;

/** An item that waits for its batch. */
interface Entry<Item> {
  readonly item: Item;
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Returns a function that collects items. Items that come while a batch waits for its turn join it.
 * @internal
 */
export function batched<Item, Returned>(
  throttle: BasicThrottle,
  delays: Delays,
  work: (items: Item[]) => Returned,
  { most, wait = 0, ...options }: BatchOptions,
): (item: Item) => Promise<BatchResult<Returned>> {
  if (typeof work !== "function") throw invalidField("invalid_option", "work", work, "a function");
  if (!Number.isSafeInteger(most) || most < 1)
    throw invalidField("invalid_option", "most", most, "an integer of at least 1");
  checkFromZero({ wait }, "wait");
  checkAcquireOptions(options);
  const entries: Entry<Item>[] = [];
  /** How many batches wait for their turn. */
  let waiting = 0;
  let stop: (() => void) | undefined;

  const take = () => {
    waiting -= 1;
    return entries.splice(0, most);
  };
  const askForTurn = () => {
    stop?.();
    stop = undefined;
    waiting += 1;
    throttle.acquire(options).then(
      () => run(work, take()),
      (error) => {
        for (const { reject } of take()) reject(error);
      },
    );
  };
  const failed = (reason: unknown) => {
    stop = undefined;
    // Those before belong to batches that wait for their turn.
    for (const { reject } of entries.splice(waiting * most)) reject(reason);
  };
  return (item) =>
    new Promise<unknown>((resolve, reject) => {
      entries.push({ item, resolve, reject });
      if (entries.length >= (waiting + 1) * most) askForTurn();
      else if (entries.length > waiting * most && stop === undefined)
        stop = delays.start(wait, options.signal, askForTurn, failed);
    }) as Promise<BatchResult<Returned>>;
}

/** Runs the work on a batch, and gives each item its result. */
async function run<Item>(work: (items: Item[]) => unknown, entries: readonly Entry<Item>[]): Promise<void> {
  // Its items may have been taken by the turn before.
  if (entries.length === 0) return;
  try {
    const results = await work(entries.map(({ item }) => item));
    if (Array.isArray(results) && results.length !== entries.length)
      throw new TollgateError(
        "invalid_operation",
        `work: it returned ${results.length} results for ${entries.length} items; return one for each`,
      );
    for (const [at, { resolve }] of entries.entries())
      resolve(Array.isArray(results) ? results[at] : undefined);
  } catch (error) {
    for (const { reject } of entries) reject(error);
  }
}
