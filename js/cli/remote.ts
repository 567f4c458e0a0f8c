import { type RemoteKey, RemoteLimiter } from "../client/index.ts";
import type { KeyField } from "../http/rule-key.ts";
import type { Command } from "./command.ts";
import { exit, UsageError } from "./errors.ts";
import type { Given, Options } from "./options.ts";

const options: Options = {
  url: {
    value: "<url>",
    help: "the Worker's address with its prefix: https://limits.example.com/_tollgate;\nby default TOLLGATE_URL",
  },
  part: {
    value: "<part>",
    multiple: true,
    help: "a part of a rule's key, with its value: ip=192.0.2.7, path=/search,\nheader:X-Api-Key=k, cookie:id=c, constant:login; several in the rule's order",
  },
  policy: { value: "<name>", help: "the policy's name in the Worker's configuration" },
  timeout: { value: "<ms>", help: "how long to wait for a response, in milliseconds; 2000 by default" },
  json: { help: "print the result as JSON" },
};

const usage = "(<key> | --part <part>…) --policy <name> [--url <url>]";

const notes = `
<key> is a key of the HTTP API. For a visitor whom a rule of the gateway limits, use --part instead: once for each part of
the rule's key, or once with the whole key, as a log with logKeys = "plain" prints it: --part /ip=9:192.0.2.7.

The token of the HTTP API is read from TOLLGATE_TOKEN.`;

/** `tollgate get`: reads a key's count from a deployed Worker. */
export const get: Command = {
  name: "get",
  summary: "Prints the count of a key, and when it expires, from a deployed Worker",
  usage,
  options,
  notes,
  run: async (given) => {
    const name = keyName(given);
    const key = remoteKey(given, name);
    const [count, expiresAt, { limit, remaining }, { allowed, retryAfter }] = await Promise.all([
      key.get(),
      key.expiresAt(),
      // Cost 0 for what remains now; cost 1 for whether a hit would be allowed.
      key.peek(0),
      key.peek(1),
    ]);
    const json = {
      ...name,
      count,
      limit,
      remaining,
      allowed,
      retryAfter: finite(retryAfter),
      expiresAt,
    };
    const lines = [
      ["count", count],
      ["limit", limit],
      ["remaining", remaining],
      ["allowed", allowed ? "yes" : `no, retry after ${retryAfter} ms`],
      [
        "expires",
        expiresAt === 0 ? `never: it has no state.${hintFor(name)}` : new Date(expiresAt).toISOString(),
      ],
    ] as const;
    show(given, json, lines.map(([name, value]) => `${name.padEnd(11)}${value}`).join("\n"));
    return exit.ok;
  },
};

/** `tollgate reset`: resets a key in a deployed Worker. */
export const reset: Command = {
  name: "reset",
  summary: "Resets a key in a deployed Worker",
  usage,
  options: {
    ...options,
    reservations: { help: "drop its open reservations too: a rule with several limits reserves for 5 s" },
  },
  notes,
  run: async (given) => {
    const name = keyName(given);
    const wasKnown = await remoteKey(given, name).reset({ reservations: given.has("reservations") });
    const words = "key" in name ? name.key : name.parts.join(" ");
    const text = wasKnown ? `${words} was reset.` : `${words} had no state.${hintFor(name)}`;
    show(given, { ...name, reset: wasKnown }, text);
    return exit.ok;
  },
};

function keyName(given: Given): KeyField {
  const [key, ...more] = given.operands;
  const parts = given.all("part");
  if (key !== undefined && parts.length > 0) throw new UsageError("name a key or use --part, not both");
  if (parts.length > 0) return { parts };
  if (key === undefined || more.length > 0)
    throw new UsageError("name one key, or use --part for the key of a rule");
  return { key };
}

/** Returns what may be wrong with a key that has no state: parts that no rule has are valid too. */
const hintFor = (name: KeyField) =>
  "key" in name ? "" : " Check the policy, and the parts and their order.";

function remoteKey(given: Given, name: KeyField): Pick<RemoteKey, "get" | "expiresAt" | "peek" | "reset"> {
  const limiter = limiterOf(given);
  if ("parts" in name) return limiter.ofRule(name.parts);
  const { key } = name;
  return {
    get: () => limiter.get(key),
    expiresAt: () => limiter.expiresAt(key),
    peek: (cost) => limiter.peek(key, cost),
    reset: (options) => limiter.reset(key, options),
  };
}

function limiterOf(given: Given): RemoteLimiter {
  const url = given.one("url") ?? process.env["TOLLGATE_URL"];
  if (url === undefined) throw new UsageError("--url or TOLLGATE_URL is required");
  const token = process.env["TOLLGATE_TOKEN"];
  if (token === undefined) throw new UsageError("TOLLGATE_TOKEN is required in the environment");
  const timeout = given.integer("timeout", 2_000, 1, 2 ** 31 - 1);
  const policy = given.required("policy");
  try {
    return new RemoteLimiter({ url, token, policy, timeout });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

const finite = (milliseconds: number) => (Number.isFinite(milliseconds) ? milliseconds : null);

function show(given: Given, json: object, text: string): void {
  process.stdout.write(`${given.has("json") ? JSON.stringify(json) : text}\n`);
}
