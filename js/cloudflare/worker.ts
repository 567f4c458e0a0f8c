// The project's own Worker, which serves the playground: that of the package with a demo, which the package does not have.

import { demoHit } from "./demo.ts";
import type { TollgateEnv } from "./env.ts";
import { isolateOf } from "./gateway/isolate.ts";
import handlers from "./index.ts";

export { RateLimiterObject, Tollgate } from "./index.ts";

export default {
  fetch(request: Request, env: TollgateEnv, context: ExecutionContext): Response | Promise<Response> {
    return isDemo(request, env) ? demoHit(request, env) : handlers.fetch(request, env, context);
  },
};

/** Returns whether a request is one to the demo, which is there only without an upstream. */
function isDemo({ url }: Request, env: TollgateEnv): boolean {
  if (!URL.canParse(url) || new URL(url).pathname !== "/demo/hit") return false;
  try {
    return isolateOf(env).upstream === undefined;
  } catch {
    return false;
  }
}
