import type { KeyLog } from "./key-log.ts";
import { type Batch, noOperations } from "./operation.ts";
import type { Result } from "./replicas.ts";

/** A call of the script for one key. It may be sent several times, until Redis has executed it or it times out. */
export class Call {
  readonly log: KeyLog;
  /** Its operations; none once it has ended. */
  batch: Batch;
  /** The number of its entry; 0 if it has none. */
  readonly number: number;
  /** The mark of its entry; empty if it has none. */
  readonly mark: string;
  /** When it times out, by the local clock. */
  readonly deadline: number;
  /** Its position among the calls that may time out; -1 if it is not one of them. */
  position = -1;
  /** Whether the text of the policies is sent. */
  withPolicies = false;
  /** The base that replaces the log up to the known mark; empty for none. */
  base = "";
  /** The time to live that the key must get, in milliseconds; 0 if the policies decide. */
  ttl = 0;
  /** When it was last sent, by the local clock. */
  sentAt = 0;
  /** How many times it was sent. */
  sends = 0;
  /** Whether its operations are settled. A later reply is ignored. */
  isEnded = false;
  /** The results, once they are known. */
  results: readonly Result[] | undefined;

  constructor(
    log: KeyLog,
    batch: Batch,
    token: { readonly number: number; readonly mark: string },
    deadline: number,
  ) {
    this.log = log;
    this.batch = batch;
    this.number = token.number;
    this.mark = token.mark;
    this.deadline = deadline;
  }

  /** Ends it, and drops its operations: otherwise they were seen to survive minor garbage collections. */
  end(): void {
    this.isEnded = true;
    this.batch = noOperations;
    this.results = undefined;
  }

  /** The length of its entry in the log: 13 digits of time, the operations and the mark. */
  get entryLength(): number {
    return this.mark === "" ? 0 : 13 + this.batch.text.length + this.mark.length;
  }
}
