import { replay } from "../wasm/generated.ts";
import type { Result } from "./replicas.ts";

/** The letters of operations that change a key, as its log has them. */
export type Write = "h" | "y" | "u" | "i" | "s" | "b" | "e" | "r" | "v" | "t" | "x" | "l";

/** Operations that only read. */
export type Read = "peek" | "get" | "expiresAt" | "exception";

/** An operation that waits for its result. */
export interface Operation {
  readonly kind: Write | Read;
  /** The operation as the log has it, or the costs of a peek. */
  readonly text: string;
  /** The position of the policy that a `get` or `expiresAt` reads. */
  readonly position: number;
  /** The text of the call's own policies; empty if it has none. */
  readonly callText: string;
  /** The duration of the reservation or lease that it makes or extends, in milliseconds; 0 if there is none. */
  readonly ttl: number;
  /** Whether it may free capacity: a hit that was denied before it may be allowed after it. */
  readonly isFreeing: boolean;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** The fields in which operations differ. */
export type OperationFields = Partial<
  Pick<Operation, "text" | "position" | "callText" | "ttl" | "isFreeing">
>;

/** Returns an operation with the defaults of the fields that are left out. */
export const operationOf = (
  kind: Operation["kind"],
  { text = "0", position = 0, callText = "", ttl = 0, isFreeing = false }: OperationFields,
  resolve: Operation["resolve"],
  reject: Operation["reject"],
): Operation => ({ kind, text, position, callText, ttl, isFreeing, resolve, reject });

/** The operations of one call: those that change the key, then those that read it. */
export interface Batch {
  /** The writing operations as the log has them; empty if there are none. */
  readonly text: string;
  readonly writes: readonly Operation[];
  readonly reads: readonly Operation[];
}

/** The batch of a call that has ended. */
export const noOperations: Batch = { text: "", writes: [], reads: [] };

/** The most runs in an entry. A run is several equal hits, or one operation. */
const maxRuns = 256;

/** The most operations of each kind, writing and reading, in a call. */
const maxOperations = 1_000;

const isRead = ({ kind }: Operation): boolean => Object.hasOwn(replay.reading, kind);

const none: readonly Operation[] = [];

/** Removes the next batch from the front of the pending operations. */
export function takeBatch(pending: Operation[]): Batch {
  const [only] = pending;
  if (pending.length === 1 && only !== undefined && !isRead(only)) {
    pending.length = 0;
    return { text: only.text, writes: [only], reads: none };
  }
  const runs: string[] = [];
  let [text, times, taken] = ["", 0, 0];
  const closeRun = () => {
    if (times > 0) runs.push(times === 1 ? text : repeated(text, times));
  };
  for (const operation of pending) {
    if (isRead(operation) || taken === maxOperations) break;
    if (operation.text !== text || operation.kind !== "h") {
      if (runs.length === maxRuns - 1) break;
      closeRun();
      [text, times] = [operation.text, 0];
    }
    times++;
    taken++;
  }
  closeRun();
  const writes = pending.splice(0, taken);
  let count = 0;
  while (count < pending.length && count < maxOperations && isRead(pending[count] as Operation)) count++;
  return { text: runs.join(";"), writes, reads: pending.splice(0, count) };
}

/** Returns the text of a run of equal hits: `*` and their number, before the policies of the call. */
function repeated(hit: string, times: number): string {
  const at = hit.indexOf("@");
  return at < 0 ? `${hit}*${times}` : `${hit.slice(0, at)}*${times}${hit.slice(at)}`;
}
