import { keyOfClient } from "./client.ts";
import type { NodeResponse } from "./node-response.ts";

/** What servers give to a fetch handler beside the request, as far as it tells the client's address. */
interface Platform {
  /** Of @hono/node-server. */
  readonly incoming?: {
    readonly socket?: { readonly remoteAddress?: string };
    readonly headers?: Readonly<Record<string, unknown>>;
  };
  readonly outgoing?: NodeResponse;
  /** Of Deno. */
  readonly remoteAddr?: { readonly hostname?: string };
  /** Of Bun. */
  requestIP?(request: unknown): { readonly address?: string } | null;
  /** Where one of them is wrapped. */
  readonly server?: Platform;
}

/** As much of a request as is read. */
interface Headed {
  readonly headers: { get(name: string): string | null };
}

const hint =
  'give key, for instance (request) => ipKey(…) of the header that your proxy overwrites, such as "X-Real-IP"';

/** In workerd any name of the environment may be a binding, so none is looked for. */
const isWorkerd = globalThis.navigator?.userAgent === "Cloudflare-Workers";

/** Returns the response that @hono/node-server writes to; undefined elsewhere. */
export function nodeResponseOf(platform: unknown): NodeResponse | undefined {
  const { outgoing } = isWorkerd ? {} : serverOf(platform);
  return typeof outgoing?.setHeader === "function" ? outgoing : undefined;
}

function serverOf(platform: unknown): Platform {
  const given = typeof platform === "object" && platform !== null ? (platform as Platform) : {};
  return given.server ?? given;
}

/** Returns the key of the client that a fetch handler serves, by what its server tells beside the request. */
export function keyOfPlatform(request: Headed, platform: unknown): string {
  if (isWorkerd) return keyOfClient(request.headers.get("CF-Connecting-IP") ?? undefined, undefined, hint);
  const server = serverOf(platform);
  const { incoming } = server;
  // Its own headers, since those of the request are made only when they are read.
  if (incoming?.headers !== undefined)
    return keyOfClient(incoming.socket?.remoteAddress, incoming.headers["x-forwarded-for"], hint);
  const address = server.remoteAddr?.hostname ?? server.requestIP?.(request)?.address;
  return keyOfClient(address, request.headers.get("X-Forwarded-For"), hint);
}

/** What a Worker gets beside the request, to wait for what goes on after the response. */
export interface WaitContext {
  waitUntil(promise: unknown): void;
}

export const isContext = (value: unknown): value is WaitContext =>
  typeof (value as Partial<WaitContext> | undefined)?.waitUntil === "function";
