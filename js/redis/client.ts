import { refused } from "../error.ts";
import { script, scriptSha } from "./script.ts";
import type { IoredisLike, NodeRedisLike, RedisSender } from "./types.ts";

/** A client that runs the script. */
export interface Runner {
  /** Runs the script by its name in Redis. */
  bySha(key: string, args: readonly string[]): Promise<unknown>;
  /** Runs the script by its text. */
  byText(key: string, args: readonly string[]): Promise<unknown>;
  /** Returns why the client cannot send now; `undefined` if it can. */
  trouble(): string | undefined;
  /** The sockets that can be corked while several commands are written. */
  streams(): readonly Corkable[];
}

interface Corkable {
  cork(): void;
  uncork(): void;
}

/** Returns the way to run the script on a client. */
export function runnerOf(client: unknown): Runner {
  const has = (name: string) =>
    typeof (client as Record<string, unknown> | null | undefined)?.[name] === "function";
  if (client !== null && typeof client === "object") {
    if (has("evalsha") && has("eval") && has("call")) return ofIoredis(client as IoredisLike);
    if (has("evalSha") && has("eval")) return ofNodeRedis(client as NodeRedisLike);
    if (has("send") && !has("evalsha")) return ofSender(client as RedisSender);
  }
  throw refused(
    "invalid_option",
    "client",
    client,
    "a client of ioredis, iovalkey or redis (from version 4 on), or an object with a method send(key, args)",
  );
}

/** States of an ioredis client in which a command would wait for a new connection, or for ever. */
const waiting = ["reconnecting", "close", "end", "disconnecting"];

function ofIoredis(client: IoredisLike): Runner {
  return {
    bySha: (key, args) => client.evalsha(scriptSha, 1, key, ...args),
    byText: (key, args) => client.eval(script, 1, key, ...args),
    trouble: () =>
      waiting.includes(client.status) ? `the client's status is "${client.status}"` : undefined,
    streams: () => ioredisClients(client).flatMap(({ stream }) => (isCorkable(stream) ? [stream] : [])),
  };
}

/** Returns the clients whose sockets an ioredis client writes to. */
function ioredisClients(client: object): readonly { readonly stream?: unknown }[] {
  const { nodes } = client as { nodes?: (role: string) => { readonly stream?: unknown }[] };
  return typeof nodes === "function" ? nodes.call(client, "master") : [client];
}

const isCorkable = (stream: unknown): stream is Corkable =>
  typeof (stream as Partial<Corkable> | undefined)?.cork === "function" &&
  typeof (stream as Partial<Corkable>).uncork === "function";

/** node-redis gathers what is written in a tick by itself. */
function ofNodeRedis(client: NodeRedisLike): Runner {
  const given = (key: string, args: readonly string[]) => ({ keys: [key], arguments: args as string[] });
  return {
    bySha: (key, args) => client.evalSha(scriptSha, given(key, args)),
    byText: (key, args) => client.eval(script, given(key, args)),
    trouble() {
      const { isOpen, isReady } = client as { isOpen?: unknown; isReady?: unknown };
      if (isOpen === false) return "the client is not connected: await client.connect() first";
      return isReady === false ? "the client is not ready" : undefined;
    },
    streams: () => [],
  };
}

function ofSender(client: RedisSender): Runner {
  const run = async (command: string, text: string, key: string, args: readonly string[]) =>
    client.send(key, [command, text, "1", key, ...args]);
  return {
    bySha: (key, args) => run("EVALSHA", scriptSha, key, args),
    byText: (key, args) => run("EVAL", script, key, args),
    trouble: () => undefined,
    streams: () => [],
  };
}
