import type { Command } from "../command.ts";
import { exit, UsageError } from "../errors.ts";
import { placeOptions, readPlace } from "../key-target.ts";
import type { Given } from "../options.ts";
import { print, printJson } from "../output.ts";
import { LiveTop } from "./live-top.ts";
import { type Order, ordered, orders } from "./order.ts";
import type { TopSource } from "./snapshot.ts";
import { view } from "./view.ts";
import { WorkerTop } from "./worker-top.ts";

const orderNames = Object.keys(orders);

/** `tollgate top`: the keys of a Redis or a Worker, live. */
export const top: Command = {
  name: "top",
  summary: "Shows the keys of a Redis or a deployed Worker: rates, denials, bans, reservations, leases",
  usage: "(--redis <url> | --url <url>) [--once [--json]]",
  options: {
    ...placeOptions,
    name: { value: "<name>", help: "the name of the limiter in Redis; all with the prefix by default" },
    once: { help: "print the state once, after one interval, and end" },
    json: { help: "with --once: print JSON" },
    interval: {
      value: "<ms>",
      help: "how often it reads, in milliseconds; 2000 by default, 1000 with --once",
    },
    sort: {
      value: "<order>",
      among: orderNames,
      help: `what comes first: ${orderNames.join(", ")}; denied by default`,
    },
    filter: { value: "<text>", help: "only keys, limiters and policies with this text" },
    keys: {
      value: "<n>",
      help: "how many keys of Redis a reading takes the values of at most; 1000 by default",
    },
    scan: {
      value: "<n>",
      help: "how many keys of Redis a reading looks at; 20000 by default, 200000 with --once",
    },
  },
  notes: `
Redis is read at a bounded cost: a reading takes SCAN calls of 1,000 keys each and the values of some keys, those with
traffic first. Denials that a process decides by itself are not in Redis; those that are in a key's log are counted.
A Worker needs watch = true in its configuration; the token is read from TOLLGATE_TOKEN.`,
  run: async (given) => {
    if (given.operands.length > 0) throw new UsageError("name no key; use --filter for some of them");
    const once = given.has("once");
    if (given.has("json") && !once) throw new UsageError("--json needs --once");
    const isTerminal = process.stdout.isTTY === true && process.stdin.isTTY === true;
    if (!once && !isTerminal) throw new UsageError("this is not a terminal; use --once");
    const interval = given.integer("interval", once ? 1_000 : 2_000, 200, 3_600_000);
    const source = await readSource(given, once);
    const order = (given.one("sort") ?? "denied") as Order;
    const filter = given.one("filter") ?? "";
    try {
      if (once) await printOnce(source, { given, interval, order, filter });
      else await new LiveTop(source, interval, order, filter).run();
      return exit.ok;
    } finally {
      source.close();
    }
  },
};

async function readSource(given: Given, once: boolean): Promise<TopSource> {
  const place = readPlace(given);
  const budget = {
    keys: given.integer("keys", 1_000, 1, 100_000),
    scan: given.integer("scan", once ? 200_000 : 20_000, 1, 1_000_000_000),
  };
  if ("url" in place) {
    for (const option of ["keys", "scan"])
      if (given.has(option)) throw new UsageError(`--${option} is for Redis`);
    return new WorkerTop(place);
  }
  const { redisTop } = await import("../redis/index.ts");
  return redisTop(place, budget);
}

interface Choices {
  readonly given: Given;
  readonly interval: number;
  readonly order: Order;
  readonly filter: string;
}

/** How many lines of text are printed at most. JSON has all keys. */
const linesOnce = 50;

/** Prints one state. Rates take two readings. */
async function printOnce(source: TopSource, { given, interval, order, filter }: Choices): Promise<void> {
  const first = await source.refresh();
  const hasRates = first.keys.length === 0 || first.groups.some(({ rate }) => rate !== null);
  if (!hasRates) await new Promise((resolve) => setTimeout(resolve, interval));
  const snapshot = hasRates ? first : await source.refresh();
  const keys = ordered(snapshot.keys, order, filter);
  if (given.has("json")) {
    const { read, ...rest } = snapshot;
    printJson({ ...rest, ...read, keys });
    return;
  }
  const lines = view(snapshot, {
    columns: process.stdout.columns || 120,
    lines: linesOnce,
    isColoured: process.stdout.isTTY === true && !process.env["NO_COLOR"],
    order,
    filter,
    isTyping: false,
    isPaused: false,
    isHelping: false,
    offset: 0,
    error: "",
    isInteractive: false,
  });
  print(`${lines.join("\n")}\n`);
}
