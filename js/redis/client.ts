import { invalidField } from "../errors/error.ts";
import { script, scriptSha } from "./script.ts";
import type { IoredisLike, NodeRedisLike, RedisSender } from "./types.ts";

/** Runs the script on a client. */
export interface Runner {
  /** Runs the script by its SHA-1. */
  bySha(key: string, args: readonly string[]): Promise<unknown>;
  /** Runs the script by its text. */
  byText(key: string, args: readonly string[]): Promise<unknown>;
  /** Returns why the client cannot send now; `undefined` if it can. */
  unavailable(): string | undefined;
  /** Returns the sockets that can be corked while several commands are written. */
  sockets(): readonly Corkable[];
}

interface Corkable {
  cork(): void;
  uncork(): void;
}

/** Returns the runner for a client. Throws `invalid_option` if the client is of no supported kind. */
export function runnerOf(client: unknown): Runner {
  const has = (name: string) =>
    typeof (client as Record<string, unknown> | null | undefined)?.[name] === "function";
  if (client !== null && typeof client === "object") {
    if (has("evalsha") && has("eval") && has("call")) return ioredisRunner(client as IoredisLike);
    if (has("evalSha") && has("eval")) return nodeRedisRunner(client as NodeRedisLike);
    if (has("send") && !has("evalsha")) return senderRunner(client as RedisSender);
  }
  throw invalidField(
    "invalid_option",
    "client",
    client,
    "a client of ioredis, iovalkey or redis (from version 4 on), or an object with a method send(key, args)",
  );
}

/** States of an ioredis client in which a command would wait for a new connection, or for ever. */
const disconnected = ["reconnecting", "close", "end", "disconnecting"];

function ioredisRunner(client: IoredisLike): Runner {
  return {
    bySha: (key, args) => client.evalsha(scriptSha, 1, key, ...args),
    byText: (key, args) => client.eval(script, 1, key, ...args),
    unavailable: () =>
      disconnected.includes(client.status) ? `the client's status is "${client.status}"` : undefined,
    sockets: () => ioredisNodes(client).flatMap(({ stream }) => (isCorkable(stream) ? [stream] : [])),
  };
}

/** Returns the clients of the nodes that an ioredis client writes to. */
function ioredisNodes(client: object): readonly { readonly stream?: unknown }[] {
  const { nodes } = client as { nodes?: (role: string) => { readonly stream?: unknown }[] };
  return typeof nodes === "function" ? nodes.call(client, "master") : [client];
}

const isCorkable = (stream: unknown): stream is Corkable =>
  typeof (stream as Partial<Corkable> | undefined)?.cork === "function" &&
  typeof (stream as Partial<Corkable>).uncork === "function";

/** node-redis writes the commands of a tick together by itself, so it has no sockets to cork. */
function nodeRedisRunner(client: NodeRedisLike): Runner {
  const options = (key: string, args: readonly string[]) => ({ keys: [key], arguments: args as string[] });
  return {
    bySha: (key, args) => client.evalSha(scriptSha, options(key, args)),
    byText: (key, args) => client.eval(script, options(key, args)),
    unavailable() {
      const { isOpen, isReady } = client as { isOpen?: unknown; isReady?: unknown };
      if (isOpen === false) return "the client is not connected: await client.connect() first";
      return isReady === false ? "the client is not ready" : undefined;
    },
    sockets: () => [],
  };
}

function senderRunner(client: RedisSender): Runner {
  const run = async (command: string, text: string, key: string, args: readonly string[]) =>
    client.send(key, [command, text, "1", key, ...args]);
  return {
    bySha: (key, args) => run("EVALSHA", scriptSha, key, args),
    byText: (key, args) => run("EVAL", script, key, args),
    unavailable: () => undefined,
    sockets: () => [],
  };
}
