import type { TollgateEnv } from "./env.ts";
import { problem } from "./problem.ts";

/** Passes a request on as it is, its body streamed, to a service binding or to another URL. */
export function forward(request: Request, env: TollgateEnv, upstream: string): Promise<Response> | Response {
  if (!/^https?:\/\//.test(upstream)) {
    const service = (env as unknown as Record<string, Fetcher | undefined>)[upstream];
    if (service === undefined) return problem(500, `upstream: there is no service binding ${upstream}`);
    return service.fetch(request);
  }
  const { pathname, search } = new URL(request.url);
  const base = upstream.replace(/\/+$/, "");
  // A redirect is the client's to follow.
  return fetch(new Request(base + pathname + search, request), { redirect: "manual" });
}
