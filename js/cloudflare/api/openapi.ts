import { operations, resultFields } from "../../wasm/operations.ts";

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
const durationUpTo = (maximum: number, inWords: string) => ({
  description: `Milliseconds, or a text such as ${inWords}.`,
  oneOf: [{ ...whole, minimum: 1, maximum }, text],
});
const length = { oneOf: [{ ...whole, minimum: 1 }, text] };
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

/** The schemas of arguments by their kinds. */
const kinds = {
  costs: { oneOf: [whole, { ...each, minProperties: 1 }], default: 1 },
  used: { oneOf: [whole, each] },
  change: {
    type: "integer",
    minimum: Number.MIN_SAFE_INTEGER,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 1,
  },
  amount: { ...whole, default: 0 },
  count: whole,
  length,
  exceptionLength: length,
  ttl: durationUpTo(86_400_000, "30s; at most a day"),
  leaseTtl: durationUpTo(10_000, "2s; at most ten seconds, and one second by default"),
  exception: exceptionOrNull,
  time: until,
  flag: { type: "boolean", default: false },
  reservation: text,
  lease: text,
  hit: { ...text, pattern: "^[0-9a-f]{16}\\.[0-9a-z]+\\.[0-9a-z]+$" },
};

const flag = { type: "boolean" } as const;

/** The schemas of results by their kinds; with the name of their field, if they have one. */
const results = {
  hit: () => ({ oneOf: [decision, object({ decision, id: { type: ["string", "null"] } })] }),
  decision: () => decision,
  count: (field: string) => object({ [field]: whole }),
  countAndException: (field: string) => object({ [field]: whole, exception, until }, [field]),
  time: (field: string) => object({ [field]: whole }),
  exceptionEnd: (field: string) =>
    object({
      [field]: { ...until, description: "When it ends, or would have ended; 0 if there was none." },
    }),
  flag: (field: string) => object({ [field]: flag }),
  exception: () => object({ exception: exceptionOrNull, until }, ["exception"]),
  reserved: () => reserved,
  settlement: () => settlement("settled", "expired", "closed"),
  extension: () => settlement("extended", "expired", "closed"),
  lease: () => leased,
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

/** What the table says of an operation. */
interface Schema {
  readonly summary: string;
  readonly on: "key" | "reservation";
  readonly policies: "none" | "all" | "one" | "ban";
  readonly takes: Readonly<Record<string, Argument>>;
  readonly gives: keyof typeof results;
}

interface Argument {
  readonly kind: keyof typeof kinds;
  readonly required: boolean;
  readonly about?: string;
}

const described = ({ kind, about }: Argument) => ({
  ...kinds[kind],
  ...(about === undefined ? {} : { description: about }),
});

function operation([name, { summary, on, policies, takes, gives }]: [string, Schema]) {
  const given = Object.entries(takes);
  const more = {
    ...Object.fromEntries(given.map(([field, argument]) => [field, described(argument)])),
    ...(policies === "one" || policies === "ban" ? { of } : {}),
  };
  const needed = given.filter(([, { required }]) => required).map(([field]) => field);
  const itemOf = (key: Record<string, unknown>) => ({
    ...object({ policy, ...key, ...more }, ["policy", ...Object.keys(key), ...needed]),
    additionalProperties: false,
  });
  const item = on === "key" ? { oneOf: [itemOf({ key }), itemOf({ parts })] } : itemOf({});
  const returns = results[gives](resultFields[name as keyof typeof resultFields]);
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
