import { defaultName, defaultPrefix } from "../../redis/names.ts";
import type { Policies } from "../../types.ts";
import { UsageError } from "../errors.ts";
import type { KeyTarget } from "../key-target.ts";
import type { TopSource } from "../top/snapshot.ts";
import { readAddress } from "./address.ts";
import { Nodes } from "./nodes.ts";
import { type FoundExceptions, findExceptions } from "./redis-exceptions.ts";
import { RedisKey } from "./redis-key.ts";
import { type Budget, RedisTop } from "./redis-top.ts";
import { StoredLimiter } from "./stored-limiter.ts";

/** A limiter in a Redis. */
interface RedisPlace {
  readonly redis: string;
  readonly prefix?: string;
  readonly name?: string;
  readonly timeout: number;
}

/** A limiter whose keys are read and changed. */
interface KeyPlace extends RedisPlace {
  readonly policies: Policies | undefined;
  /** The name of a ban, among several. */
  readonly policy: string | undefined;
}

/** Returns a key of a limiter in Redis. */
export async function redisKey(key: string, place: KeyPlace): Promise<KeyTarget> {
  const { prefix = defaultPrefix, name = defaultName, timeout, policies, policy } = place;
  checkName(name);
  const nodes = await Nodes.open(readAddress(place.redis), timeout);
  const named = { prefix, name };
  return new RedisKey(key, policy, new StoredLimiter(nodes, named, timeout, policies), nodes, named);
}

/** Returns the keys of a limiter in Redis, or of all with the prefix, that have an exception. */
export async function redisExceptions(place: RedisPlace, most: number): Promise<FoundExceptions> {
  const { prefix = defaultPrefix, name, timeout } = place;
  if (name !== undefined) checkName(name);
  const nodes = await Nodes.open(readAddress(place.redis), timeout);
  try {
    return await findExceptions(nodes, prefix, name, most);
  } finally {
    nodes.close();
  }
}

/** Returns the keys of a limiter in Redis, or of all with the prefix. */
export function redisTop(place: RedisPlace, budget: Budget): TopSource {
  const { prefix = defaultPrefix, name, timeout } = place;
  if (name !== undefined) checkName(name);
  return new RedisTop(readAddress(place.redis), timeout, { prefix, name }, budget);
}

function checkName(name: string): void {
  if (!/^[\w.-]{1,64}$/.test(name))
    throw new UsageError(`--name: ${JSON.stringify(name)} is not 1 to 64 letters, digits or any of _ . -`);
}
