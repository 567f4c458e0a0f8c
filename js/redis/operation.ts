import { replay } from "../core/generated.ts";
import type { Result } from "./replicas.ts";

/** Operations that change a key go into its log under these letters. */
export type Write = "h" | "i" | "s" | "r" | "v" | "t" | "x" | "l";

/** Operations that only read. */
export type Read = "peek" | "get" | "expiresAt";

/** An operation that waits for its result. */
export interface Operation {
  readonly kind: Write | Read;
  /** The operation as an entry has it, or the costs of a peek. */
  readonly text: string;
  /** The position of the policy that it is about. */
  readonly position: number;
  /** The text of the call's own policies; empty if it has none. */
  readonly call: string;
  /** How long a reservation or a lease lasts by it; 0 if it makes none. */
  readonly ttl: number;
  /** Whether a hit that is denied before it may be allowed after it. */
  readonly isRelaxing: boolean;
  /** When it was asked for, by the local clock. */
  readonly since: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Operations that go in one call: those that change the key, then those that read it. */
export interface Batch {
  /** The operations of the entry as text; empty if there are none. */
  readonly text: string;
  readonly writes: readonly Operation[];
  readonly reads: readonly Operation[];
}

/** How many runs of equal operations an entry may have. */
const mostRuns = 256;

/** How many operations a call may have. */
const mostOperations = 1_000;

const isRead = ({ kind }: Operation): boolean => Object.hasOwn(replay.reading, kind);

/** Takes the next batch from the front of what waits. */
export function takeBatch(waiting: Operation[]): Batch {
  const runs: string[] = [];
  let [text, times, taken] = ["", 0, 0];
  const closeRun = () => {
    if (times > 0) runs.push(times === 1 ? text : repeated(text, times));
  };
  for (const operation of waiting) {
    if (isRead(operation) || taken === mostOperations) break;
    if (operation.text !== text || operation.kind !== "h") {
      if (runs.length === mostRuns - 1) break;
      closeRun();
      [text, times] = [operation.text, 0];
    }
    times++;
    taken++;
  }
  closeRun();
  const writes = waiting.splice(0, taken);
  let count = 0;
  while (count < waiting.length && count < mostOperations && isRead(waiting[count] as Operation)) count++;
  return { text: runs.join(";"), writes, reads: waiting.splice(0, count) };
}

/** A run of equal hits. How many they are stands before the policies of the call. */
function repeated(hit: string, times: number): string {
  const at = hit.indexOf("@");
  return at < 0 ? `${hit}*${times}` : `${hit.slice(0, at)}*${times}${hit.slice(at)}`;
}
