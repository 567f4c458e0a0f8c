import type { TollgateEnv } from "./env.ts";
import { handle } from "./handler.ts";

export type { RuleParts } from "../http/rule-key.ts";
export type { Numbers } from "../wasm/decision-numbers.ts";
export type { Counted, Operation } from "../wasm/operations.ts";
export { type PolicyName, Tollgate } from "./api/entrypoint.ts";
export { type ResetOptions, RuleTarget } from "./api/rule-target.ts";
export type { TollgateEnv } from "./env.ts";
export type { Admission } from "./object/admission.ts";
export type { ErrorInfo, Reserved, UndoableHit } from "./object/decision.ts";
export { RateLimiterObject } from "./object/object.ts";

/** The Worker's handlers: a plain object, since a class costs a third of the requests per second. */
const handlers: {
  /** Handles a request: by the HTTP API under its prefix, otherwise by the gateway. */
  fetch(request: Request, env: TollgateEnv, context: ExecutionContext): Response | Promise<Response>;
} = { fetch: handle };

export default handlers;
