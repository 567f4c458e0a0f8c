import { invalidField, reserveOnly, TollgateError } from "../errors/error.ts";
import type { Costs, Decision, Duration, Policy, Settlement } from "../types.ts";
import type { AcquireOptions } from "./basic-throttle.ts";

/** The options of `run`. */
export interface RunOptions extends Omit<AcquireOptions, "cost"> {
  /** The cost to reserve: one number, or one for each policy by its name; 1 by default. */
  readonly cost?: Costs | undefined;
  /** How long it may run before it is charged in full and its slot is free; a day by default. */
  readonly ttl?: Duration | undefined;
  /** Whether work that throws is free of charge. By default it is charged like work that returns. */
  readonly cancelOnThrow?: boolean | undefined;
}

/** The argument of the work, by which it may settle its reservation once. */
export interface Running {
  /** The decision that let it through. */
  readonly decision: Decision;
  /**
   * Charges the used amount and frees the rest. By default all that was reserved is charged when the work ends. Over a
   * limiter outside the process it returns a promise.
   */
  settle(used?: Costs): Settlement | Promise<Settlement>;
}

/** A reservation in this process, or outside of it. */
interface OpenReservation {
  readonly decision: Decision;
  settle(used?: Costs): Settlement | Promise<Settlement>;
}

/**
 * Runs work that was let through, and settles its reservation.
 * @internal
 */
export async function running<Result>(
  work: (running: Running) => Result | PromiseLike<Result>,
  reservation: OpenReservation,
  isCancelledOnThrow: boolean,
  settled: () => void,
): Promise<Result> {
  const { decision } = reservation;
  const settle = (used?: Costs) => {
    const settlement = reservation.settle(used);
    if (typeof settlement === "string") settled();
    // The slot is free when the other limiter knows. If it does not, the reservation ends by itself.
    else settlement.then(settled, settled);
    return settlement;
  };
  const close = async (used?: Costs) => {
    const settlement = settle(used);
    // The work is done, whether or not the other limiter can be reached.
    if (typeof settlement !== "string") await settlement.catch(() => {});
  };
  let result: Result;
  try {
    result = await work({ decision, settle });
  } catch (error) {
    await close(isCancelledOnThrow ? 0 : undefined);
    throw error;
  }
  await close();
  return result;
}

/**
 * Checks the arguments of `run`.
 * @internal
 */
export function checkRun(work: unknown, { cancelOnThrow = false }: RunOptions, isShared: boolean): void {
  if (typeof work !== "function") throw invalidField("invalid_option", "work", work, "a function");
  if (typeof cancelOnThrow !== "boolean")
    throw invalidField("invalid_option", "cancelOnThrow", cancelOnThrow, "a boolean");
  if (isShared)
    throw new TollgateError(
      "invalid_operation",
      "run: a budget that tabs share has no reservations; use acquire, or a throttle without shared",
    );
}

/**
 * Returns the error of `acquire` under a concurrency policy; `undefined` if there is no such policy.
 * @internal
 */
export function runOnly(policies: readonly Policy[]): TollgateError | undefined {
  const policy = policies.find(({ algorithm }) => algorithm === "concurrency");
  if (policy === undefined) return undefined;
  const { code, message } = reserveOnly(policy.name ?? policy.algorithm, "acquire");
  return new TollgateError(code, message.replace("use reserve", "use run"));
}
