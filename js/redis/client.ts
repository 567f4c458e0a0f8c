import { invalidField } from "../errors/error.ts";
import { script, scriptSha } from "./log.lua";
import type { IoredisLike, NodeRedisLike, RedisSender } from "./types.ts";

/** Runs the script on a client. */
export interface Runner {
  /** Whether the keys of a call must be in the same slot. Set when the server says so. */
  isCluster: boolean;
  /** Runs the script by its SHA-1. */
  bySha(keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Runs the script by its text. */
  byText(keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Runs another script, which is short and rare. */
  run(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
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
    isCluster: (client as { isCluster?: unknown }).isCluster === true,
    bySha: (keys, args) => client.evalsha(scriptSha, keys.length, ...keys, ...args),
    byText: (keys, args) => client.eval(script, keys.length, ...keys, ...args),
    run: (other, keys, args) => client.eval(other, keys.length, ...keys, ...args),
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
  const options = (keys: readonly string[], args: readonly string[]) => ({
    keys: keys as string[],
    arguments: args as string[],
  });
  return {
    isCluster: false,
    bySha: (keys, args) => client.evalSha(scriptSha, options(keys, args)),
    byText: (keys, args) => client.eval(script, options(keys, args)),
    run: (other, keys, args) => client.eval(other, options(keys, args)),
    unavailable() {
      const { isOpen, isReady } = client as { isOpen?: unknown; isReady?: unknown };
      if (isOpen === false) return "the client is not connected: await client.connect() first";
      return isReady === false ? "the client is not ready" : undefined;
    },
    sockets: () => [],
  };
}

function senderRunner(client: RedisSender): Runner {
  const run = async (command: string, text: string, keys: readonly string[], args: readonly string[]) =>
    client.send(keys[0] as string, [command, text, `${keys.length}`, ...keys, ...args]);
  return {
    isCluster: false,
    bySha: (keys, args) => run("EVALSHA", scriptSha, keys, args),
    byText: (keys, args) => run("EVAL", script, keys, args),
    run: (other, keys, args) => run("EVAL", other, keys, args),
    unavailable: () => undefined,
    sockets: () => [],
  };
}
