import { isStoreError } from "../errors/store-error.ts";
import type { Decision } from "../types.ts";

/** A hit that can be undone. */
export interface UndoableHit {
  readonly decision: Decision;
  /** Gives back what of the hit still counts, once however often it is called; `undefined` if the hit charged nothing. */
  readonly undo: (() => Promise<unknown>) | undefined;
  /** Called if the hit is not undone. */
  readonly keep?: (() => unknown) | undefined;
}

/** How long an undo that failed waits before it is tried again, in milliseconds: no longer in all than undos are accepted. */
const waits = [100, 200, 400, 800, 1_600, 3_200];

/**
 * Undoes a hit, and resolves after the first try. If that failed, it is tried again in the background: a try whose reply was
 * lost may have given back, and a hit is given back once. A hit that cannot be undone ends as any other.
 */
export async function undoHit(
  undo: () => Promise<unknown>,
  background: (work: Promise<void>) => void = () => {},
): Promise<void> {
  if (!(await isDone(undo))) background(tryAgain(undo));
}

async function tryAgain(undo: () => Promise<unknown>): Promise<void> {
  for (const wait of waits) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, wait);
      // It does not keep a process of Node alive.
      (timer as { unref?(): unknown }).unref?.();
    });
    if (await isDone(undo)) return;
  }
}

/** Returns whether an undo need not be tried again: it was performed, or rejected. */
async function isDone(undo: () => Promise<unknown>): Promise<boolean> {
  try {
    await undo();
    return true;
  } catch (error) {
    return !isStoreError(error);
  }
}
