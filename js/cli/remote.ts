import { RemoteLimiter, type RuleKey } from "../client/index.ts";
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
    const [key, limiter] = keyAndLimiter(given);
    const [count, expiresAt, { limit, remaining }, { allowed, retryAfter }] = await Promise.all([
      limiter.get(key),
      limiter.expiresAt(key),
      // Cost 0 for what remains now; cost 1 for whether a hit would be allowed.
      limiter.peek(key, 0),
      limiter.peek(key),
    ]);
    const json = {
      ...jsonOf(key),
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
        expiresAt === 0 ? `never: it has no state.${hintFor(key)}` : new Date(expiresAt).toISOString(),
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
  options,
  notes,
  run: async (given) => {
    const [key, limiter] = keyAndLimiter(given);
    const wasKnown = await limiter.reset(key);
    const name = typeof key === "string" ? key : [key.parts].flat().join(" ");
    const text = wasKnown ? `${name} was reset.` : `${name} had no state.${hintFor(key)}`;
    show(given, { ...jsonOf(key), reset: wasKnown }, text);
    return exit.ok;
  },
};

/** Returns what may be wrong with a key that has no state: parts that no rule has are valid too. */
const hintFor = (key: string | RuleKey) =>
  typeof key === "string" ? "" : " Check the policy, and the parts and their order.";

const jsonOf = (key: string | RuleKey) => (typeof key === "string" ? { key } : { parts: key.parts });

function keyOf(given: Given): string | RuleKey {
  const [key, ...more] = given.operands;
  const parts = given.all("part");
  if (key !== undefined && parts.length > 0) throw new UsageError("name a key or use --part, not both");
  if (parts.length > 0) return { parts };
  if (key === undefined || more.length > 0)
    throw new UsageError("name one key, or use --part for the key of a rule");
  return key;
}

function keyAndLimiter(given: Given): [string | RuleKey, RemoteLimiter] {
  const key = keyOf(given);
  const url = given.one("url") ?? process.env["TOLLGATE_URL"];
  if (url === undefined) throw new UsageError("--url or TOLLGATE_URL is required");
  const token = process.env["TOLLGATE_TOKEN"];
  if (token === undefined) throw new UsageError("TOLLGATE_TOKEN is required in the environment");
  const timeout = given.integer("timeout", 2_000, 1, 2 ** 31 - 1);
  const policy = given.required("policy");
  try {
    return [key, new RemoteLimiter({ url, token, policy, timeout })];
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

const finite = (milliseconds: number) => (Number.isFinite(milliseconds) ? milliseconds : null);

function show(given: Given, json: object, text: string): void {
  process.stdout.write(`${given.has("json") ? JSON.stringify(json) : text}\n`);
}
