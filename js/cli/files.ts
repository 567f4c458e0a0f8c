import { createReadStream, readFileSync, statSync } from "node:fs";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { detect } from "../access-log/detect.ts";
import type { LogOptions } from "../access-log/log.ts";
import type { LogSource } from "../access-log/replay.ts";
import { TextBlocks } from "../access-log/text.ts";
import { CommandError, UsageError } from "./errors.ts";

const chunk = 1 << 20;

/** Counts the bytes that were read from all sources, before unpacking. */
export interface Meter {
  read: number;
}

/** Returns the log in a file, or on standard input for `-`. */
export function logFile(path: string, meter: Meter): LogSource {
  const name = path === "-" ? "standard input" : path;
  const open = (): Readable =>
    path === "-" ? process.stdin : createReadStream(path, { highWaterMark: chunk });
  return {
    name,
    bytes: () => unpacked(name, open(), meter),
    first: async (options) =>
      path === "-" ? Number.NEGATIVE_INFINITY : await firstTime(unpacked(name, open(), { read: 0 }), options),
  };
}

/** Returns the text of a file. */
export function textOf(path: string): string {
  if (statSync(path).isDirectory()) throw new UsageError(`${path} is a folder; name the file in it`);
  return readFileSync(path, "utf8");
}

/** Returns the size of a file; undefined if it has none, such as a pipe. */
export function sizeOf(path: string): number | undefined {
  if (path === "-") return undefined;
  const stat = statSync(path);
  if (stat.isDirectory()) throw new CommandError(`${path} is a folder; name the files in it`);
  return stat.isFile() ? stat.size : undefined;
}

/** Yields the bytes of a stream, unpacked if they are gzip's, whatever the name of the file. */
async function* unpacked(name: string, stream: Readable, meter: Meter): AsyncGenerator<Uint8Array> {
  const chunks = stream[Symbol.asyncIterator]();
  const { value: first, done } = await chunks.next();
  if (done) return;
  const bytes = counted(first, chunks, meter);
  if (first[0] !== 0x1f || first[1] !== 0x8b) {
    yield* bytes;
    return;
  }
  const gunzip = createGunzip({ chunkSize: 1 << 18 });
  const packed = Readable.from(bytes);
  packed.on("error", (error) => gunzip.destroy(error));
  try {
    yield* packed.pipe(gunzip);
  } catch (error) {
    throw new CommandError(`${name} cannot be unpacked: ${(error as Error).message}`);
  } finally {
    packed.destroy();
  }
}

async function* counted(
  first: Uint8Array,
  rest: AsyncIterator<Uint8Array>,
  meter: Meter,
): AsyncGenerator<Uint8Array> {
  meter.read += first.length;
  yield first;
  for (let next = await rest.next(); !next.done; next = await rest.next()) {
    meter.read += next.value.length;
    yield next.value;
  }
}

/** Returns the time of the first valid line; `-Infinity` if there is none in the first block. */
async function firstTime(bytes: AsyncIterable<Uint8Array>, options: LogOptions): Promise<number> {
  const blocks = new TextBlocks();
  let text = "";
  for await (const each of bytes) {
    text += blocks.push(each);
    if (text !== "") break;
  }
  const lines = (text + blocks.end()).split(/\r?\n/).filter((line) => line.trim() !== "");
  const format = detect(lines.slice(0, 20), options);
  for (const line of lines)
    if (format?.read(line) === undefined) return format?.time ?? Number.NEGATIVE_INFINITY;
  return Number.NEGATIVE_INFINITY;
}
