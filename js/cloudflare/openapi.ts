import type { Operation } from "./object.ts";

const text = { type: "string" } as const;
const whole = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
const object = (
  properties: Record<string, unknown>,
  required: readonly string[] = Object.keys(properties),
) => ({
  type: "object",
  properties,
  required,
});

const policy = {
  description: "One of the configured policies by its name, or several that are one decision.",
  oneOf: [text, { type: "array", items: text, minItems: 1, maxItems: 32 }],
};
const key = { ...text, minLength: 1, maxLength: 1024, description: "1 to 1024 bytes in UTF-8." };
const each = { type: "object", additionalProperties: whole, description: "One for each policy by its name." };
const cost = { oneOf: [whole, each], default: 1 };
const added = {
  type: "integer",
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
  default: 1,
  description: "Below 0 it gives back.",
};
const durationUpTo = (maximum: number, inWords: string) => ({
  description: `Milliseconds, or a text such as ${inWords}.`,
  oneOf: [{ ...whole, minimum: 1, maximum }, text],
});
const duration = durationUpTo(86_400_000, "30s; at most a day");
const id = { ...text, description: "The id of a reservation, as reserve answered it." };
const of = { ...text, description: "Which of several policies." };

const told = {
  allowed: { type: "boolean" },
  count: whole,
  limit: whole,
  remaining: whole,
  retryAfter: { ...whole, type: ["integer", "null"], description: "Milliseconds; null for never." },
  resetAfter: { ...whole, description: "Milliseconds." },
  policy: text,
  violated: { type: "array", items: text },
};
const reason = { enum: ["full"], description: "As many reservations are open as may be." };
const decision = object({ ...told, reason }, Object.keys(told));
const count = object({ count: whole });
const reserved = object({
  allowed: { type: "boolean" },
  decision,
  id: { type: ["string", "null"] },
  expiresAt: { ...whole, type: ["integer", "null"], description: "When it is charged in full." },
});
const settlement = (...words: string[]) =>
  object({ settlement: { enum: words }, id: text, expiresAt: whole }, ["settlement"]);
const settled = settlement("settled", "expired", "closed");

const leased = object({
  decision,
  lease: {
    oneOf: [
      object({
        id: text,
        amount: { ...whole, description: "How much is left of it." },
        life: {
          ...whole,
          description: "Milliseconds for which it may be spent, from when it was asked for.",
        },
        countsDown: { type: "boolean", description: "Whether the count falls as it is spent." },
      }),
      { type: "null" },
    ],
  },
});

type Described = [summary: string, takes: Record<string, unknown>, needs: string[], answers: unknown];

/** What each operation takes besides the policy, what of that it needs, and what it answers. */
const operations: Record<Operation, Described> = {
  hit: ["Asks whether the key may act now, and takes the cost if so.", { key, cost }, ["key"], decision],
  peek: ["What a hit would answer. Changes nothing.", { key, cost }, ["key"], decision],
  inc: ["Adds without asking.", { key, cost: added, of }, ["key"], count],
  set: [
    "Makes the key as if so much had just been used.",
    { key, count: whole, of },
    ["key", "count"],
    count,
  ],
  get: ["The key's count.", { key, of }, ["key"], count],
  expires_at: [
    "When the key's state ends; 0 when it has none.",
    { key, of },
    ["key"],
    object({ expiresAt: whole }),
  ],
  reset: [
    "Forgets the key, but for its reservations unless told so.",
    { key, reservations: { type: "boolean", default: false } },
    ["key"],
    object({ reset: { type: "boolean" } }),
  ],
  reserve: [
    "Decides as a hit does, and sets the cost aside until it is settled, or charged in full at its end.",
    { key, cost, ttl: duration, settles: { type: "array", items: id } },
    ["key"],
    reserved,
  ],
  settle: [
    "Closes a reservation and charges what was used, by default all of it.",
    { id, used: { oneOf: [whole, each] } },
    ["id"],
    settled,
  ],
  cancel: ["Closes a reservation without charging anything.", { id }, ["id"], settled],
  extend: [
    "Moves the end of a reservation to so long from now.",
    { id, ttl: duration },
    ["id", "ttl"],
    settlement("extended", "expired", "closed"),
  ],
  lease: [
    "Decides as a hit does, charges what was spent of a lease, and renews it or gives back the rest.",
    {
      key,
      cost: { ...whole, default: 0 },
      id: { ...text, description: "The lease that is held, as lease answered it." },
      used: { ...whole, default: 0, description: "How much of it was spent since the last report." },
      size: {
        ...whole,
        default: 0,
        description: "How much to set aside, with what is left; 0 gives that back.",
      },
      ttl: durationUpTo(10_000, "2s; at most ten seconds, and one second by default"),
    },
    ["key"],
    leased,
  ],
};

const json = (schema: unknown) => ({ content: { "application/json": { schema } } });
const problem = (description: string) => ({
  description,
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
});

/** One item or a batch in, the same out. */
const oneOrMany = (schema: unknown, item = schema) => ({
  oneOf: [schema, { type: "array", items: item, minItems: 1, maxItems: 100 }],
});

/** The names of all operations. */
export const operationNames: readonly string[] = Object.keys(operations);

function operation([name, [summary, takes, needs, answers]]: [string, Described]) {
  const item = {
    ...object({ policy, ...takes }, ["policy", ...needs]),
    additionalProperties: false,
  };
  const post = {
    operationId: name,
    summary,
    requestBody: { required: true, ...json(oneOrMany(item)) },
    responses: {
      200: {
        description: "The answer, or one for each item.",
        ...json(oneOrMany(answers, { oneOf: [answers, { $ref: "#/components/schemas/Failed" }] })),
      },
      400: problem("Something is wrong with what was asked."),
      401: problem("No token, or a wrong one."),
      403: problem("No token is configured."),
      413: problem("The body is too large."),
      415: problem("The body is not JSON."),
      429: problem("Too many wrong tokens came from this address."),
      503: problem("The object did not answer."),
    },
  };
  return [`/v1/${name}`, { post }];
}

/** The HTTP API in the words of OpenAPI 3.1. */
export const openapi = (prefix: string) => ({
  openapi: "3.1.0",
  info: { title: "Tollgate", version: "1", description: "Rate limits with one shared budget." },
  servers: [{ url: prefix }],
  security: [{ token: [] }],
  paths: Object.fromEntries(Object.entries(operations).map(operation)),
  components: {
    securitySchemes: { token: { type: "http", scheme: "bearer" } },
    schemas: {
      Problem: object({ type: text, title: text, status: whole, code: text }, ["type", "title", "status"]),
      Failed: object({ error: object({ code: text, message: text }) }),
    },
  },
});
