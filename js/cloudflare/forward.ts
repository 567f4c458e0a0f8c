import type { TollgateEnv } from "./env.ts";
import type { Ask } from "./isolate.ts";
import { log } from "./log.ts";
import { problem } from "./problem.ts";

/** Whether an upstream is an address, and not the name of a service binding. */
export const isAddress = (upstream: string): boolean => /^https?:\/\//.test(upstream);

/** The service binding of a name, if there is one. */
export function serviceNamed(name: string, env: TollgateEnv): Fetcher | undefined {
  const service = (env as unknown as Record<string, Partial<Fetcher> | undefined>)[name];
  return typeof service?.fetch === "function" ? (service as Fetcher) : undefined;
}

/** Passes a request on, its body streamed, to a service binding or to another URL. */
export async function forward(
  request: Request,
  url: URL,
  env: TollgateEnv,
  upstream: string,
): Promise<Response> {
  try {
    // Awaited, so that a failure is caught here.
    return await (isAddress(upstream)
      ? fetchFrom(request, url, upstream)
      : (serviceNamed(upstream, env) as Fetcher).fetch(asCounted(request, url)));
  } catch (cause) {
    log({ event: "error", via: "gateway", failure: "upstream", cause: String(cause) });
    return problem(502, "The upstream did not answer");
  }
}

/** A request with its URL as it was counted. The platform passes `%2e%2e` and `\` on, which no `URL` shows. */
const asCounted = (request: Request, { href }: URL): Request =>
  href === request.url ? request : new Request(href, request);

/**
 * Makes sure that the origin reads the value that was counted: a header that came in several lines goes on in one,
 * since some origins look at one line only.
 */
export function withOneValue(request: Request, asks: readonly Ask[]): Request {
  let copy: Request | undefined;
  for (const { headers } of asks)
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
