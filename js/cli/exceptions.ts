import { count, moment } from "../access-log/words.ts";
import type { Command } from "./command.ts";
import { exit, UsageError, withReplies } from "./errors.ts";
import { valuesInWords } from "./exception-words.ts";
import { placeOptions, readPlace } from "./key-target.ts";
import { print, printJson } from "./output.ts";
import { table } from "./terminal.ts";

/** The most keys of Redis that are looked at by default. */
const defaultScan = 1_000_000;

/** `tollgate exceptions`: the keys of a Redis that have one. */
export const exceptions: Command = {
  name: "exceptions",
  summary: "Lists the keys of a Redis that have an exception, until when, and the note of who set it",
  usage: "--redis <url> [--name <name>] [--json]",
  options: {
    ...placeOptions,
    name: { value: "<name>", help: "the name of the limiter in Redis; all with the prefix by default" },
    scan: { value: "<n>", help: `how many keys of Redis it looks at; ${defaultScan} by default` },
  },
  notes: `
It reads the value of every key of the limiters, at the cost of SCAN and GET. The one that ends first comes first. A note is
what tollgate except --note was given; an exception that something else has set since has none. A Worker's objects cannot be
listed.`,
  run: async (given) => {
    if (given.operands.length > 0) throw new UsageError("name no key; tollgate except shows that of one");
    const place = readPlace(given);
    const scan = given.integer("scan", defaultScan, 1, 1_000_000_000);
    if ("url" in place) throw new UsageError("--url: the objects of a Worker cannot be listed; use --redis");
    const { redisExceptions } = await import("./redis/index.ts");
    const { found, scanned, isComplete } = await withReplies("Redis", () => redisExceptions(place, scan));
    if (given.has("json")) printJson({ exceptions: found, keysScanned: scanned, isComplete });
    else {
      const rows = found.map(({ limiter, key, exception, note }) => [
        key,
        limiter,
        valuesInWords(exception),
        moment(exception.until),
        note ?? "",
      ]);
      const list =
        rows.length === 0
          ? "No key has an exception."
          : table({ head: ["key", "limiter", "exception", "until (UTC)", "note"], rows });
      const rest = isComplete ? "" : `\nOnly ${count(scanned)} keys of Redis were looked at; see --scan.`;
      print(`${list}${rest}\n`);
    }
    return exit.ok;
  },
};
