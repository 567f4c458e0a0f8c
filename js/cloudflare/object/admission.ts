/** What an operation on a key does if nothing is stored of the key. */
export interface Admission {
  /** How long what is stored of the key is kept at least, in milliseconds: the key is new once in that time. */
  readonly keptFor: number;
  /** Whether the operation is performed on a new key. Otherwise it changes nothing. */
  readonly isAdmitted: boolean;
}

/** The result of an operation that was not performed since the key is new; the end of one that was. */
export const newMark = " new";
