/** The operations of the live page in the OpenAPI document. */
const problem = (description: string) => ({
  description,
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
});

const get = (operationId: string, summary: string, parameters: readonly object[] = []) => ({
  get: {
    operationId,
    summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    responses: {
      200: { description: "The result.", content: { "application/json": { schema: { type: "object" } } } },
      ...(parameters.length === 0 ? {} : { 400: problem("The key or a policy is invalid.") }),
      401: problem("No token, or a wrong one."),
      403: problem("No token is configured."),
      429: problem("Too many wrong tokens came from this address."),
      503: problem("The object did not respond."),
    },
  },
});

const query = (name: string, description: string, schema: object) => ({
  name,
  in: "query",
  description,
  schema,
});
const texts = { type: "array", items: { type: "string" } };

/** The paths by which the counts of all keys and the denials of one are read. */
export const paths = {
  "/v1/watch": get("watch", "Returns the counts by rule, the most denied keys, and the last denials."),
  "/v1/why": get("why", "Returns what counts now for a key, and why it was denied within a day.", [
    query("key", "A key of the API.", { type: "string" }),
    query("parts", "The parts of a rule's key, instead of a key; or # and the id of an object.", texts),
    query("policy", "The policies to show; by default those that denied the key, or else all.", texts),
  ]),
};
