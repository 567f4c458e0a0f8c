import type { TollgateEnv } from "../env.ts";
import { log } from "../log.ts";
import { problem } from "../problem.ts";
import type { LimitCheck } from "./isolate.ts";

/** Returns whether an upstream is a URL, and not the name of a service binding. */
export const isAddress = (upstream: string): boolean => /^https?:\/\//.test(upstream);

/** Returns the service binding of that name; `undefined` if there is none. */
export function serviceNamed(name: string, env: TollgateEnv): Fetcher | undefined {
  const service = (env as unknown as Record<string, Partial<Fetcher> | undefined>)[name];
  return typeof service?.fetch === "function" ? (service as Fetcher) : undefined;
}

/** Forwards a request, its body streamed, to a service binding or to another URL. */
export async function forward(
  original: Request,
  url: URL,
  env: TollgateEnv,
  upstream: string,
  forwardsRewrites: boolean,
): Promise<Response> {
  const request = forwardsRewrites ? original : withoutRewrites(original);
  try {
    // Awaited, so that a failure is caught here.
    return await (isAddress(upstream)
      ? fetchFrom(request, url, upstream)
      : (serviceNamed(upstream, env) as Fetcher).fetch(asCounted(request, url)));
  } catch (cause) {
    log({ event: "error", via: "gateway", failure: "upstream", cause: String(cause) });
    return problem(502, "The upstream did not respond");
  }
}

/** Returns the request with the URL that was matched: the platform would forward `%2e%2e` and `\` unresolved. */
const asCounted = (request: Request, { href }: URL): Request =>
  href === request.url ? request : new Request(href, request);

/** Headers by which some origins replace the URL, so that they would see another one than the rules. */
const rewrites = ["X-Original-URL", "X-Rewrite-URL"];

function withoutRewrites(request: Request): Request {
  if (!rewrites.some((name) => request.headers.has(name))) return request;
  const copy = new Request(request);
  for (const name of rewrites) copy.headers.delete(name);
  return copy;
}

/**
 * Joins the lines of headers in the key, so that the origin reads the value that was counted: some origins read one line
 * only.
 */
export function withOneValue(request: Request, checks: readonly LimitCheck[]): Request {
  let copy: Request | undefined;
  for (const { headers } of checks)
    for (const name of headers) {
      const value = request.headers.get(name);
      if (!value?.includes(",")) continue;
      copy ??= new Request(request);
      copy.headers.set(name, value);
    }
  return copy ?? request;
}

function fetchFrom(request: Request, { pathname, search }: URL, upstream: string): Promise<Response> {
  const base = upstream.replace(/\/+$/, "");
  // A redirect is the client's to follow.
  return fetch(new Request(base + pathname + search, request), { redirect: "manual" });
}
