/** A reply of the script. */
export interface Reply {
  /** Redis's time, in milliseconds since the epoch. */
  readonly now: number;
  /** For each key a text that begins with its kind, which `log.lua` explains; none if the deadline has passed. */
  readonly texts: readonly string[];
}

/** How many characters the time has. */
const stampLength = 7;

/** The code of the first of the 64 characters in which times are written. */
const stampDigit = 48;

/** Parses the reply to a call for so many keys; `undefined` if invalid. */
export function readReply(reply: unknown, keys: number): Reply | undefined {
  if (!Array.isArray(reply) || (reply.length !== 1 && reply.length !== keys + 1)) return undefined;
  const stamp = textOf(reply[0]);
  if (stamp?.length !== stampLength) return undefined;
  const texts: string[] = [];
  for (let index = 1; index < reply.length; index++) {
    const text = textOf(reply[index]);
    if (text === undefined) return undefined;
    texts.push(text);
  }
  let now = 0;
  for (let at = 0; at < stampLength; at++) now = 64 * now + stamp.charCodeAt(at) - stampDigit;
  return Number.isSafeInteger(now) ? { now, texts } : undefined;
}

/** Returns the text of a reply, also if the client is configured to return bytes; `undefined` for anything else. */
function textOf(reply: unknown): string | undefined {
  if (typeof reply === "string") return reply;
  return reply instanceof Uint8Array ? Buffer.from(reply).toString("latin1") : undefined;
}
