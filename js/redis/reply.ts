/** A reply of the script. */
export interface Reply {
  /** Its first character, which says what follows. */
  readonly kind: string;
  /** Redis's time, in milliseconds since the epoch. */
  readonly now: number;
  /** Where the known mark ends; -1 where that did not change. */
  readonly at: number;
  /** Entries, or a whole value. */
  readonly text: string;
}

/** Where the text of a reply begins: after its kind and 13 digits. */
const head = 14;

/** Reads a reply of the script; `undefined` if it is none. */
export function readReply(reply: unknown): Reply | undefined {
  const text = typeof reply === "string" ? reply : textOf(reply);
  if (text === undefined || text.length < head) return undefined;
  const kind = text[0] as string;
  const now = Number(text.slice(1, head));
  if (!Number.isSafeInteger(now)) return undefined;
  if (kind !== "#") return { kind, now, at: -1, text: text.slice(head) };
  const colon = text.indexOf(":", head);
  const at = Number(text.slice(head, colon));
  return colon < 0 ? undefined : { kind, now, at, text: text.slice(colon + 1) };
}

/** Clients can be set to return bytes. */
const textOf = (reply: unknown): string | undefined =>
  reply instanceof Uint8Array ? Buffer.from(reply).toString("latin1") : undefined;
