import { type JsonException, keyException } from "../../policy/exception-fields.ts";
import { RedisLimiter } from "../../redis/index.ts";
import { keysPrefix, limitersPrefix } from "../../redis/names.ts";
import type { KeyException } from "../../types.ts";
import type { Nodes } from "./nodes.ts";
import { Notes } from "./notes.ts";
import { KeyScan } from "./scan.ts";
import { timeOf } from "./stored-limiter.ts";

/** A key that has an exception. */
export interface ExceptedKey {
  readonly limiter: string;
  readonly key: string;
  readonly exception: KeyException;
  /** What who set it has noted. */
  readonly note?: string;
}

/** What a scan found, the exception that ends first first. */
export interface FoundExceptions {
  readonly found: readonly ExceptedKey[];
  readonly scanned: number;
  /** Whether all keys of Redis were looked at. */
  readonly isComplete: boolean;
}

/** Looks for exceptions at the keys of one limiter, or of all with a prefix. */
export async function findExceptions(
  nodes: Nodes,
  prefix: string,
  limiter: string | undefined,
  most: number,
): Promise<FoundExceptions> {
  const start = limiter === undefined ? limitersPrefix(prefix) : keysPrefix(prefix, limiter);
  const scan = new KeyScan(await nodes.masters(), start);
  const notes = new Notes(nodes);
  const found = new Map<string, ExceptedKey>();
  while (!scan.isDone && scan.scanned < most) {
    const names = await scan.next();
    const now = await timeOf(nodes);
    await Promise.all(
      names.map(async (name) => {
        const exception = await exceptionIn(nodes, start + name, now);
        if (exception === null) return;
        const at = name.indexOf(":");
        const own = limiter ?? name.slice(0, at);
        const key = limiter === undefined ? name.slice(at + 1) : name;
        const note = await notes.read({ prefix, name: own }, key, exception.until);
        found.set(name, { limiter: own, key, exception, ...(note === undefined ? {} : { note }) });
      }),
    );
  }
  const inOrder = [...found.values()].sort((one, other) => one.exception.until - other.exception.until);
  return { found: inOrder, scanned: scan.scanned, isComplete: scan.isDone };
}

/** Returns the exception in a value of Redis; null if it has none, or is none of a limiter. */
async function exceptionIn(nodes: Nodes, name: string, now: number): Promise<KeyException | null> {
  const value = await nodes.send(["GET", name]).catch((error) => {
    // A key of another type is not one of a limiter.
    if (String(error.message).startsWith("WRONGTYPE")) return null;
    throw error;
  });
  if (typeof value !== "string") return null;
  try {
    const [exception = null, until = 0] = RedisLimiter.inspect(value, now, now).exception ?? [];
    return keyException({ exception: exception as JsonException["exception"], until });
  } catch {
    return null;
  }
}
