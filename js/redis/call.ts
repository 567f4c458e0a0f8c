import type { KeyLog } from "./key-log.ts";
import type { Batch } from "./operation.ts";
import type { Result } from "./replicas.ts";

/** A call of the script for one key. It may be sent several times, until Redis has done it or its time is over. */
export class Call {
  readonly log: KeyLog;
  readonly batch: Batch;
  /** The number of its entry; 0 if it has none. */
  readonly number: number;
  /** The mark of its entry; empty if it has none. */
  readonly mark: string;
  /** When it is given up, by the local clock. */
  readonly due: number;
  /** Called when it is given up. */
  readonly giveUp: () => void;
  /** Whether the text of the policies is sent. */
  withText = false;
  /** The base that is proposed; empty if none is. */
  base = "";
  /** The time to live that is to be set, whatever the policies say; 0 if there is none. */
  ttl = 0;
  /** When it was last sent, by the local clock. */
  sentAt = 0;
  /** How often it was sent. */
  sends = 0;
  /** Set when nobody waits for it any more. */
  isOver = false;
  /** The results, once they are known. */
  results: readonly Result[] | undefined;

  constructor(
    log: KeyLog,
    batch: Batch,
    token: { readonly number: number; readonly mark: string },
    due: number,
    giveUp: (call: Call) => void,
  ) {
    this.log = log;
    this.batch = batch;
    this.number = token.number;
    this.mark = token.mark;
    this.due = due;
    this.giveUp = () => giveUp(this);
  }

  /** Returns how long its entry is. */
  get entryLength(): number {
    return this.mark === "" ? 0 : 13 + this.batch.text.length + this.mark.length;
  }
}
