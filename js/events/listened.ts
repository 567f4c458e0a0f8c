import { unpublished } from "./caller.ts";

const warn = (error: unknown) => console.error("tollgate: onDecision failed:", error);

/** Calls a listener. What it throws is logged, and what it hits is not published. */
export function listened(listener: () => unknown): void {
  try {
    const listening = unpublished(listener) as Partial<Promise<unknown>> | undefined;
    // One that is asynchronous may fail later.
    listening?.then?.(undefined, warn);
  } catch (error) {
    warn(error);
  }
}
