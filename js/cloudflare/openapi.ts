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
const cost = { ...whole, default: 1 };
const of = { ...text, description: "Which of several policies." };

const decision = object({
  allowed: { type: "boolean" },
  count: whole,
  limit: whole,
  remaining: whole,
  retryAfter: { ...whole, type: ["integer", "null"], description: "Milliseconds; null for never." },
  resetAfter: { ...whole, description: "Milliseconds." },
  policy: text,
  violated: { type: "array", items: text },
});
const count = object({ count: whole });

type Described = [summary: string, takes: Record<string, unknown>, needs: string[], answers: unknown];

/** What each operation takes besides policy and key, what of that it needs, and what it answers. */
const operations: Record<Operation, Described> = {
  hit: ["Asks whether the key may act now, and takes the cost if so.", { cost }, [], decision],
  peek: ["What a hit would answer. Changes nothing.", { cost }, [], decision],
  inc: ["Adds without asking.", { cost, of }, [], count],
  set: ["Makes the key as if so much had just been used.", { count: whole, of }, ["count"], count],
  get: ["The key's count.", { of }, [], count],
  expires_at: ["When the key's state ends; 0 when it has none.", { of }, [], object({ expiresAt: whole })],
  reset: ["Forgets the key.", {}, [], object({ reset: { type: "boolean" } })],
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
    ...object({ policy, key, ...takes }, ["policy", "key", ...needs]),
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
