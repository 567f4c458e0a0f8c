import { invalidField, reserveOnly, TollgateError } from "../errors/error.ts";
import type { Reservation } from "../reservation/reservation.ts";
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
  /** Charges the used amount and frees the rest. By default all that was reserved is charged when the work ends. */
  settle(used?: Costs): Settlement;
}

/**
 * Runs work that was let through, and settles its reservation.
 * @internal
 */
export async function running<Result>(
  work: (running: Running) => Result | PromiseLike<Result>,
  reservation: Reservation,
  isCancelledOnThrow: boolean,
  settled: () => void,
): Promise<Result> {
  const { decision } = reservation;
  const settle = (used?: Costs): Settlement => {
    const settlement = reservation.settle(used);
    settled();
    return settlement;
  };
  try {
    const result = await work({ decision, settle });
    settle();
    return result;
  } catch (error) {
    settle(isCancelledOnThrow ? 0 : undefined);
    throw error;
  }
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
