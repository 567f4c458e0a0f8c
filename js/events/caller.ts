/** The request of a guard, while it calls a limiter. */
export interface Caller {
  readonly adapter: string;
  readonly request: unknown;
  /** Set by the limiter that publishes the decision, so that the guard does not. */
  isTaken: boolean;
}

interface Slot {
  /** `null` if the caller publishes the decision itself. */
  caller: Caller | null | undefined;
}

const name = Symbol.for("tollgate.caller");

/** One slot for all entries of the package. */
const slot: Slot = /* @__PURE__ */ (() => {
  const host = globalThis as { [name]?: Slot };
  host[name] ??= { caller: undefined };
  return host[name];
})();

/** Runs `work`, whose synchronous calls of limiters are those of the caller. */
export function calledBy<Result>(caller: Caller | null | undefined, work: () => Result): Result {
  const before = slot.caller;
  slot.caller = caller;
  try {
    return work();
  } finally {
    slot.caller = before;
  }
}

/** Runs `work`, whose synchronous calls of limiters publish no decision. */
export const unpublished = <Result>(work: () => Result): Result => calledBy(null, work);

/** Returns the caller of a limiter that publishes its decision. */
export function takenCaller(): Caller | null | undefined {
  const { caller } = slot;
  if (caller) caller.isTaken = true;
  return caller;
}

/** Returns the fields of a message that name the caller. */
export const callerFields = (
  caller: Caller | null | undefined,
): { readonly adapter?: string; readonly request?: unknown } =>
  caller ? { adapter: caller.adapter, request: caller.request } : {};
