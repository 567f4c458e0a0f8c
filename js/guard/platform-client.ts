import { TollgateError } from "../errors/error.ts";
import type { ReadClient } from "./client.ts";
import type { NodeResponse } from "./node-response.ts";

/** The further arguments that servers pass to a fetch handler, as far as they have the client's address. */
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
  /** Wraps one of these. */
  readonly server?: Platform;
}

/** The part of a request that is read. */
interface Headed {
  readonly headers: { get(name: string): string | null };
}

const hint =
  'give key, for instance (request) => ipKey(…) of the header that your proxy overwrites, such as "X-Real-IP"';

/** Not a warning: everyone would share one budget, and no request would ever have an address. */
const noAddress = () =>
  new TollgateError(
    "invalid_option",
    `key is required, since the server passes no client address (Next never does); ${hint}, or in Deno, Bun and Node pass on the handler's second argument; see docs/frameworks.md`,
  );

/** In workerd any name of the environment may be a binding, so none is read. */
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

/**
 * Reads the client of a fetch handler, by the argument that its server passes beside the request.
 *
 * @throws `TollgateError` with the code `invalid_option` if that argument cannot have an address.
 */
export function clientOfPlatform<Result>(
  request: Headed,
  read: ReadClient<Result>,
  platform: unknown,
): Result {
  if (isWorkerd) return read(request.headers.get("CF-Connecting-IP") ?? undefined, undefined, hint);
  const server = serverOf(platform);
  const { incoming } = server;
  // Node's own headers: those of the request are created when they are first read.
  if (incoming?.headers !== undefined)
    return read(incoming.socket?.remoteAddress, incoming.headers["x-forwarded-for"], hint);
  if (server.remoteAddr === undefined && typeof server.requestIP !== "function") throw noAddress();
  const address = server.remoteAddr?.hostname ?? server.requestIP?.(request)?.address;
  return read(address, request.headers.get("X-Forwarded-For"), hint);
}

/** The context of a Worker, which waits for work after the response. */
export interface WaitContext {
  waitUntil(promise: unknown): void;
}

export const isContext = (value: unknown): value is WaitContext =>
  typeof (value as Partial<WaitContext> | undefined)?.waitUntil === "function";
