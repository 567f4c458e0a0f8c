import { CommandError } from "../errors.ts";

/** A reply of Redis. An error in it is a value, so that one in a list does not hide the others. */
export type Reply = string | number | null | ReplyError | readonly Reply[];

/** An error that Redis replied; its message begins with the code, such as `WRONGPASS`. */
export class ReplyError extends CommandError {}

/** The error for bytes that are not a reply of Redis. */
export class NotRedis extends Error {}

/** Returns a command as Redis reads it. */
export function encoded(args: readonly string[]): string {
  let text = `*${args.length}\r\n`;
  for (const arg of args) text += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`;
  return text;
}

/** How long a line is at most that is no text of the caller's. */
const maxLine = 64 * 1024;

/** Reads replies in the protocol RESP 2 from the chunks of a connection. */
export class ReplyReader {
  #chunks: Buffer[] = [];
  #length = 0;
  /** How many bytes there must be before reading goes on. */
  #needed = 1;

  /** Returns the replies that are complete. Throws `NotRedis` if the bytes are none. */
  read(chunk: Buffer): Reply[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed) return [];
    const bytes = Buffer.concat(this.#chunks);
    const replies: Reply[] = [];
    let at = 0;
    for (;;) {
      const cursor = { at, needed: 0 };
      const reply = readReply(bytes, cursor);
      if (reply === undefined) {
        this.#needed = Math.max(cursor.needed, bytes.length + 1) - at;
        break;
      }
      replies.push(reply);
      at = cursor.at;
    }
    const rest = bytes.subarray(at);
    this.#chunks = [rest];
    this.#length = rest.length;
    return replies;
  }
}

interface Cursor {
  at: number;
  /** How many bytes the reply needs at least, if it is not complete. */
  needed: number;
}

/** Reads one reply; `undefined` if it is not complete. */
function readReply(bytes: Buffer, cursor: Cursor): Reply | undefined {
  const kind = bytes[cursor.at];
  if (kind === undefined) return undefined;
  if (!"+-:$*".includes(String.fromCharCode(kind))) throw notRedis(bytes, cursor.at);
  const end = bytes.indexOf("\r\n", cursor.at);
  if (end < 0) {
    if (bytes.length - cursor.at > maxLine) throw notRedis(bytes, cursor.at);
    return undefined;
  }
  const line = bytes.toString("utf8", cursor.at + 1, end);
  cursor.at = end + 2;
  if (kind === 0x2b) return line;
  if (kind === 0x2d) return new ReplyError(line);
  const number = Number(line);
  if (!Number.isInteger(number)) throw notRedis(bytes, end - line.length);
  if (kind === 0x3a) return number;
  if (number < 0) return null;
  return kind === 0x24 ? readBulk(bytes, cursor, number) : readList(bytes, cursor, number);
}

function readBulk(bytes: Buffer, cursor: Cursor, length: number): string | undefined {
  const end = cursor.at + length;
  if (bytes.length < end + 2) {
    cursor.needed = end + 2;
    return undefined;
  }
  const text = bytes.toString("utf8", cursor.at, end);
  cursor.at = end + 2;
  return text;
}

function readList(bytes: Buffer, cursor: Cursor, length: number): Reply[] | undefined {
  const list: Reply[] = [];
  while (list.length < length) {
    const reply = readReply(bytes, cursor);
    if (reply === undefined) return undefined;
    list.push(reply);
  }
  return list;
}

/** Returns the error for other bytes, with the line they begin with. */
function notRedis(bytes: Buffer, at: number): NotRedis {
  const [line = ""] = bytes.toString("latin1", at, at + 80).split(/[\r\n]/);
  return new NotRedis(line.replace(/[^ -~]/g, "?"));
}
