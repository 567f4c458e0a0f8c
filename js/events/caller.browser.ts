/** Whether limiters publish no decision now. Browsers have no guards, so there is no other caller. */
let isSilent = false;

/** Runs `work`, whose synchronous calls of limiters publish no decision. */
export function unpublished<Result>(work: () => Result): Result {
  const before = isSilent;
  isSilent = true;
  try {
    return work();
  } finally {
    isSilent = before;
  }
}

/** Returns `null` if a limiter publishes no decision now. */
export const takenCaller = (): null | undefined => (isSilent ? null : undefined);

/** There is no caller to name. */
export const callerFields = (): undefined => undefined;
