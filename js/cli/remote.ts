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
    help: "a part of the key by which a rule counts, with its value: ip=192.0.2.7, path=/search,\nheader:X-Api-Key=k, cookie:id=c, constant:login; several in the rule's order",
  },
  policy: { value: "<name>", help: "the policy's name in the Worker's configuration" },
  timeout: { value: "<ms>", help: "how long to wait for a response, in milliseconds; 2000 by default" },
  json: { help: "print the result as JSON" },
};

const usage = "(<key> | --part <part>…) --policy <name> [--url <url>]";

const notes = `
A key of the HTTP API is named as it is. The key by which a rule of the gateway counts a visitor is named by its parts,
or as a log with logKeys = "plain" prints it: --part /ip=9:192.0.2.7.

The token of the HTTP API is read from TOLLGATE_TOKEN.`;

/** `tollgate get`: reads a key's count from a deployed Worker. */
export const get: Command = {
  name: "get",
  summary: "Prints the count of a key, and when it ends, from a deployed Worker",
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
      ["expires", expiresAt === 0 ? "it has no state" : new Date(expiresAt).toISOString()],
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
    const hint = typeof key === "string" ? "" : " Check the policy, and the parts and their order.";
    const text = wasKnown ? `${name} was reset.` : `${name} had no state.${hint}`;
    show(given, { ...jsonOf(key), reset: wasKnown }, text);
    return exit.ok;
  },
};

const jsonOf = (key: string | RuleKey) => (typeof key === "string" ? { key } : { parts: key.parts });

function keyOf(given: Given): string | RuleKey {
  const [key, ...more] = given.operands;
  const parts = given.all("part");
  if (key !== undefined && parts.length > 0)
    throw new UsageError("name a key or, by --part, the key of a rule, not both");
  if (parts.length > 0) return { parts };
  if (key === undefined || more.length > 0)
    throw new UsageError("name one key, or the key of a rule by --part");
  return key;
}

function keyAndLimiter(given: Given): [string | RuleKey, RemoteLimiter] {
  const key = keyOf(given);
  const url = given.one("url") ?? process.env["TOLLGATE_URL"];
  if (url === undefined) throw new UsageError("--url or TOLLGATE_URL is required");
  const token = process.env["TOLLGATE_TOKEN"];
  if (token === undefined) throw new UsageError("TOLLGATE_TOKEN is required in the environment");
  const timeout = given.integer("timeout", 2_000, 1, 2 ** 31 - 1);
  return [key, new RemoteLimiter({ url, token, policy: given.required("policy"), timeout })];
}

const finite = (milliseconds: number) => (Number.isFinite(milliseconds) ? milliseconds : null);

function show(given: Given, json: object, text: string): void {
  process.stdout.write(`${given.has("json") ? JSON.stringify(json) : text}\n`);
}
