import { api } from "./api/api.ts";
import type { TollgateEnv } from "./env.ts";
import { forward } from "./gateway/forward.ts";
import { gateway } from "./gateway/gateway.ts";
import { type Isolate, isolateOf, Misconfigured } from "./gateway/isolate.ts";
import { problem } from "./problem.ts";
import { collectorOf } from "./watch.ts";

/** Handles a request: by the API under its prefix, by the gateway, or by the page if there is no upstream. */
export function handle(
  request: Request,
  env: TollgateEnv,
  context: ExecutionContext,
): Response | Promise<Response> {
  const url = urlOf(request);
  if (url === undefined) return problem(400, "The request's target is not a path");
  let isolate: Isolate;
  try {
    isolate = isolateOf(env);
  } catch (error) {
    if (error instanceof Misconfigured) return misconfigured(request, url, env, error);
    throw error;
  }
  // Loaded before the request is handled, so that it is counted.
  if (isolate.watches && isolate.collector === undefined)
    return collectorOf(isolate).then(() => handle(request, env, context));
  const path = url.pathname;
  if (isOfApi(path, isolate.prefix)) {
    return api(request, env, context, isolate, path.slice(isolate.prefix.length + 4));
  }
  if (isolate.watches && path === `${isolate.prefix}/watch`)
    return import("./watch/watch-chunk.ts").then(({ page }) => page(request));
  if (isolate.upstream !== undefined)
    return gateway({ request, url, env, context, isolate, upstream: isolate.upstream });
  return env.ASSETS?.fetch(request) ?? problem(404, "Not found");
}

/** Returns the URL of a request; `undefined` if invalid. */
function urlOf({ url }: Request): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}

const isOfApi = (path: string, prefix: string) => path.startsWith(`${prefix}/v1/`);

/** Handles a request while the configuration has errors. The log names them; the response reveals none. */
function misconfigured(
  request: Request,
  url: URL,
  env: TollgateEnv,
  { openGate }: Misconfigured,
): Response | Promise<Response> {
  // Calls of the API have the token, which the origin must not see.
  return openGate === undefined || isOfApi(url.pathname, openGate.prefix)
    ? problem(500, "The configuration of this Worker has errors, which its log names")
    : forward(request, url, env, openGate.upstream, false);
}
