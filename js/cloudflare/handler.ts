import { api } from "./api.ts";
import { demoHit } from "./demo.ts";
import type { TollgateEnv } from "./env.ts";
import { gateway } from "./gateway.ts";
import { type Isolate, isolateOf, Misconfigured } from "./isolate.ts";
import { problem } from "./problem.ts";

/** Answers a request: the API under its prefix, everything else through the gateway, or the page where there is none. */
export function handle(
  request: Request,
  env: TollgateEnv,
  context: ExecutionContext,
): Response | Promise<Response> {
  let isolate: Isolate;
  try {
    isolate = isolateOf(env);
  } catch (error) {
    if (error instanceof Misconfigured) return misconfigured(error);
    throw error;
  }
  const { pathname } = new URL(request.url);
  if (pathname.startsWith(`${isolate.prefix}/v1/`)) {
    return api(request, env, isolate, pathname.slice(isolate.prefix.length + 4));
  }
  if (isolate.upstream !== undefined)
    return gateway(request, pathname, env, context, isolate, isolate.upstream);
  if (pathname === "/demo/hit") return demoHit(request, env);
  return env.ASSETS?.fetch(request) ?? problem(404, "Not found");
}

const misconfigured = ({ mistakes }: Misconfigured) =>
  problem(500, "The configuration of this Worker is wrong", {
    mistakes: mistakes.map(([path, problem]) => ({ path, problem })),
  });
