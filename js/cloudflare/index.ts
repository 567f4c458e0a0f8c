export { type PolicyName, Tollgate } from "./entrypoint.ts";
export type { TollgateEnv } from "./env.ts";
export { RateLimiterObject } from "./object.ts";

import type { TollgateEnv } from "./env.ts";
import { handle } from "./handler.ts";

/** The Worker's handlers: a plain object, since a class costs a third of the requests per second. */
const handlers = { fetch: handle } satisfies ExportedHandler<TollgateEnv>;

export default handlers;
