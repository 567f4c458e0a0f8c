/** A reply of the script. */
export interface Reply {
  /** Its first character, which `script.ts` explains. */
  readonly kind: string;
  /** Redis's time, in milliseconds since the epoch. */
  readonly now: number;
  /** The end of the known mark in the value; -1 if it is where the caller expected it. */
  readonly offset: number;
  /** Entries, or a whole value. */
  readonly text: string;
}

/** The length of the kind and the 13 digits of the time. */
const headLength = 14;

/** Parses a reply of the script; `undefined` if invalid. */
export function readReply(reply: unknown): Reply | undefined {
  const text = typeof reply === "string" ? reply : textOfBytes(reply);
  if (text === undefined || text.length < headLength) return undefined;
  const kind = text[0] as string;
  const now = Number(text.slice(1, headLength));
  if (!Number.isSafeInteger(now)) return undefined;
  if (kind !== "#") return { kind, now, offset: -1, text: text.slice(headLength) };
  const colon = text.indexOf(":", headLength);
  const offset = Number(text.slice(headLength, colon));
  return colon < 0 ? undefined : { kind, now, offset, text: text.slice(colon + 1) };
}

/** Returns the text of a reply in bytes, which clients can be configured to return; `undefined` for anything else. */
const textOfBytes = (reply: unknown): string | undefined =>
  reply instanceof Uint8Array ? Buffer.from(reply).toString("latin1") : undefined;
