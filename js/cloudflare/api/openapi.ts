import type { Operation } from "../object/object.ts";

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
  description: "The name of a configured policy, or the names of several that are one decision.",
  oneOf: [text, { type: "array", items: text, minItems: 1, maxItems: 32 }],
};
const key = { ...text, minLength: 1, maxLength: 1024, description: "1 to 1024 bytes in UTF-8." };
const part = {
  ...text,
  minLength: 1,
  pattern: "^(ip=|path=|header:[^=]+=|cookie:[^=]+=|constant:|/)[\\s\\S]|^#[0-9a-f]{64}$",
  description: "Such as ip=192.0.2.7, header:X-Api-Key=k or constant:login.",
};
const parts = {
  description: "The parts of a rule's key with their values, in its order, or the key as the log prints it.",
  oneOf: [part, { type: "array", items: part, minItems: 1 }],
};
const each = { type: "object", additionalProperties: whole, description: "One for each policy by its name." };
const cost = { oneOf: [whole, { ...each, minProperties: 1 }], default: 1 };
const added = {
  type: "integer",
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
  default: 1,
  description: "A negative cost gives back.",
};
const durationUpTo = (maximum: number, inWords: string) => ({
  description: `Milliseconds, or a text such as ${inWords}.`,
  oneOf: [{ ...whole, minimum: 1, maximum }, text],
});
const duration = durationUpTo(86_400_000, "30s; at most a day");
const length = { oneOf: [{ ...whole, minimum: 1 }, text] };
const id = { ...text, description: "The id of a reservation, as reserve returned it." };
const of = { ...text, description: "The name of the policy, if there are several." };

const decisionFields = {
  allowed: { type: "boolean" },
  count: whole,
  limit: whole,
  remaining: whole,
  retryAfter: { ...whole, type: ["integer", "null"], description: "Milliseconds; null for never." },
  resetAfter: { ...whole, description: "Milliseconds until the key is as if it had never been used." },
  moreAfter: {
    ...whole,
    description: "Milliseconds until more than `remaining` would be allowed; 0 if all of it is left.",
  },
  policy: text,
  violated: { type: "array", items: text },
};
const reason = {
  enum: ["full", "banned", "denied", "reserved"],
  description:
    "The key has as many open reservations as it may have, a ban holds, an exception denies it, or open reservations alone are in the way.",
};
const decision = object({ ...decisionFields, reason }, Object.keys(decisionFields));
const count = object({ count: whole });
const until = { ...whole, description: "Milliseconds since the epoch." };
const fields = {
  type: "object",
  properties: Object.fromEntries([
    ...["limit", "capacity", "refillRate", "leakRate", "after", "factor"].map((name) => [
      name,
      { ...whole, minimum: 1 },
    ]),
    ...["for", "most"].map((name) => [name, length]),
  ]),
  additionalProperties: false,
};
const exception = {
  description: "Everything is allowed or denied, or other numbers by the name of the policy.",
  oneOf: [
    object({ allow: { const: true } }),
    object({ deny: { const: true } }),
    { type: "object", additionalProperties: fields, minProperties: 1 },
  ],
};
const exceptionOrNull = { oneOf: [exception, { type: "null" }] };
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
        amount: { ...whole, description: "The amount that is left." },
        life: {
          ...whole,
          description: "How many milliseconds after the request it may be spent.",
        },
        countsDown: { type: "boolean", description: "Whether the count falls as it is spent." },
      }),
      { type: "null" },
    ],
  },
});

type Described = [summary: string, takes: Record<string, unknown>, needs: string[], returns: unknown];

/** Each operation: its summary, its fields besides the policy, the required ones among them, and its result. */
const operations: Record<Operation, Described> = {
  hit: [
    "Decides whether the key may act now, and charges the cost if so.",
    {
      key,
      cost,
      undoable: { type: "boolean", default: false, description: "Whether the result has an id for undo." },
    },
    ["key"],
    { oneOf: [decision, object({ decision, id: { type: ["string", "null"] } })] },
  ],
  peek: [
    "Returns the decision of a hit without making it: its numbers include the cost, if that would be allowed. A cost of 0 tells what counts now. Changes no state.",
    { key, cost },
    ["key"],
    decision,
  ],
  inc: ["Adds a cost to the count, whether it fits or not.", { key, cost: added, of }, ["key"], count],
  set: [
    "Sets the key's count, as if it had just been used, or its tokens.",
    { key, count: whole, of },
    ["key", "count"],
    count,
  ],
  get: [
    "Returns the key's count, and the exception that is in force.",
    { key, of },
    ["key"],
    object({ count: whole, exception, until }, ["count"]),
  ],
  expires_at: [
    "Returns when the key's state ends; 0 if it has none.",
    { key, of },
    ["key"],
    object({ expiresAt: whole }),
  ],
  ban: [
    "Denies every hit of the key for so long, or changes the end of the ban that holds.",
    { key, for: { ...length, description: "Milliseconds, or a text such as 1h." }, of },
    ["key", "for"],
    object({ until: whole }),
  ],
  unban: [
    "Lifts the ban of the key and forgets its past ones.",
    { key, of },
    ["key"],
    object({ unbanned: { type: "boolean" } }),
  ],
  except: [
    "Gives the key other numbers, or allows or denies it, until a time; null lifts the exception that it has.",
    {
      key,
      exception: exceptionOrNull,
      until: { ...until, description: "When it ends, in milliseconds since the epoch." },
      for: {
        ...length,
        description: "How long it lasts instead: milliseconds, or a text such as 7d; at most 400 days.",
      },
    },
    ["key", "exception"],
    object({ until: { ...until, description: "When it ends, or would have ended; 0 if there was none." } }),
  ],
  exceptions: [
    "Returns the exception of the key that is in force.",
    { key },
    ["key"],
    object({ exception: exceptionOrNull, until }, ["exception"]),
  ],
  reset: [
    "Removes the key's states, and its reservations if `reservations` is true.",
    { key, reservations: { type: "boolean", default: false } },
    ["key"],
    object({ reset: { type: "boolean" } }),
  ],
  undo: [
    "Gives back what of a hit still counts, within ten seconds of it and once.",
    {
      key,
      id: { ...text, pattern: "^[0-9a-f]{16}\\.[0-9a-z]+\\.[0-9a-z]+$", description: "As hit returned it." },
      cost,
    },
    ["key", "id"],
    object({ undone: { type: "boolean", description: "Whether something was given back." } }),
  ],
  reserve: [
    "Decides as a hit does, and reserves the cost until it is settled, or charged in full at its end.",
    { key, cost, ttl: duration },
    ["key"],
    reserved,
  ],
  settle: [
    "Closes a reservation and charges the used amount, by default all of it.",
    { id, used: { oneOf: [whole, each] } },
    ["id"],
    settled,
  ],
  cancel: ["Closes a reservation without a charge.", { id }, ["id"], settled],
  extend: [
    "Moves the end of a reservation to `ttl` from now.",
    { id, ttl: duration },
    ["id", "ttl"],
    settlement("extended", "expired", "closed"),
  ],
  lease: [
    "Decides as a hit does, charges the spent part of a lease, and renews the lease or gives back the rest.",
    {
      key,
      cost: { ...whole, default: 0 },
      id: { ...text, description: "The id of the lease, as lease returned it." },
      used: { ...whole, default: 0, description: "The amount that was spent since the last report." },
      size: {
        ...whole,
        default: 0,
        description: "The amount to reserve, including the unspent rest; 0 gives the rest back.",
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

/** Returns the schema of one item or a batch. */
const oneOrMany = (schema: unknown, item = schema) => ({
  oneOf: [schema, { type: "array", items: item, minItems: 1, maxItems: 100 }],
});

/** The names of all operations. */
export const operationNames: readonly string[] = Object.keys(operations);

function operation([name, [summary, takes, needs, returns]]: [string, Described]) {
  const itemOf = (takes: Record<string, unknown>, needs: string[]) => ({
    ...object({ policy, ...takes }, ["policy", ...needs]),
    additionalProperties: false,
  });
  const { key, ...more } = takes;
  const byParts = () => itemOf({ parts, ...more }, needs.toSpliced(needs.indexOf("key"), 1, "parts"));
  const own = itemOf(takes, needs);
  const item = key === undefined ? own : { oneOf: [own, byParts()] };
  const post = {
    operationId: name,
    summary,
    requestBody: { required: true, ...json(oneOrMany(item)) },
    responses: {
      200: {
        description: "The result, or one for each item.",
        ...json(oneOrMany(returns, { oneOf: [returns, { $ref: "#/components/schemas/Failed" }] })),
      },
      400: problem("The request is invalid."),
      401: problem("No token, or a wrong one."),
      403: problem("No token is configured."),
      413: problem("The body is too large."),
      415: problem("The body is not JSON."),
      429: problem("Too many wrong tokens came from this address."),
      503: problem("The object did not respond."),
    },
  };
  return [`/v1/${name}`, { post }];
}

/** Returns the OpenAPI 3.1 document of the HTTP API, with more paths. */
export const openapi = (prefix: string, more: Readonly<Record<string, object>>) => ({
  openapi: "3.1.0",
  info: { title: "Tollgate", version: "1", description: "Rate limits with one shared budget." },
  servers: [{ url: prefix }],
  security: [{ token: [] }],
  paths: { ...Object.fromEntries(Object.entries(operations).map(operation)), ...more },
  components: {
    securitySchemes: { token: { type: "http", scheme: "bearer" } },
    schemas: {
      Problem: object({ type: text, title: text, status: whole, code: text }, ["type", "title", "status"]),
      Failed: object({ error: object({ code: text, message: text }) }),
    },
  },
});
