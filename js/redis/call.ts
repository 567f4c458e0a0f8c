import type { Timed } from "./deadlines.ts";
import type { KeyLog } from "./key-log.ts";
import { type Batch, noOperations } from "./operation.ts";
import type { Result } from "./replicas.ts";

/** A base that is proposed for a value. */
export interface Base {
  /** Its kind, which `log.lua` explains. */
  readonly kind: "b" | "n" | "m" | "r";
  /** Its text, with its mark unless that is the known one. */
  readonly text: string;
  /** Its mark; empty if that is the known one. */
  readonly mark: string;
}

/** What is done with a call whose reply was read: its operations get their results or an error, or it is sent again. */
export type Next = "settle" | "again" | "fail";

/** A call for one key. It may be sent several times, until Redis has executed it or it times out. */
export class Call implements Timed {
  readonly log: KeyLog;
  /** Its operations; none once it has ended. */
  batch: Batch;
  deadline = 0;
  position = -1;
  /** The proposed base. */
  base: Base | undefined;
  /** The time to live that the key must get, in milliseconds; 0 if the policies decide. */
  ttl = 0;
  /** How many times it was sent. */
  sends = 0;
  /** Whether its operations are settled. A later reply is ignored. */
  isEnded = false;
  /** The results, once they are known. */
  results: readonly Result[] | undefined;
  /** When the last state of its key ends, once the results are known; 0 if nothing was changed. */
  endsAt = 0;

  next: Next = "settle";
  /** The error of a call that fails. */
  error: unknown;

  constructor(log: KeyLog, batch: Batch) {
    this.log = log;
    this.batch = batch;
  }

  /** The operations to send; empty if it has none, or none must be written now. */
  get operations(): string {
    // No entry is written to an unreadable value, and none is written twice.
    return this.results === undefined && !this.log.isUnreadable ? this.batch.text : "";
  }

  /** Ends it, and drops its operations: otherwise they were seen to survive minor garbage collections. */
  end(): void {
    this.isEnded = true;
    this.batch = noOperations;
    this.results = undefined;
  }
}
