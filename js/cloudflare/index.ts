import type { TollgateEnv } from "./env.ts";
import { handle } from "./handler.ts";

export type { RuleParts } from "../http/rule-key.ts";
export type { Reserved } from "./decision.ts";
export { type PolicyName, Tollgate } from "./entrypoint.ts";
export type { TollgateEnv } from "./env.ts";
export { RateLimiterObject } from "./object.ts";
export { type ResetOptions, RuleTarget } from "./rule-target.ts";

/** The Worker's handlers: a plain object, since a class costs a third of the requests per second. */
const handlers: {
  /** Handles a request: by the HTTP API under its prefix, otherwise by the gateway. */
  fetch(request: Request, env: TollgateEnv, context: ExecutionContext): Response | Promise<Response>;
} = { fetch: handle };

export default handlers;
