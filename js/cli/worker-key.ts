import { type RemoteKey, RemoteLimiter } from "../client/index.ts";
import type { KeyField } from "../http/rule-key.ts";
import { UsageError } from "./errors.ts";
import type { KeyTarget } from "./key-target.ts";

/** A Worker, and the name of one of its policies. */
interface WorkerPolicy {
  readonly url: string;
  readonly token: string;
  readonly policy: string;
  readonly timeout: number;
}

/** The operations on one key that the command needs. */
type Key = Pick<RemoteKey, "get" | "expiresAt" | "peek" | "reset" | "ban" | "unban">;

/** Returns a key of a deployed Worker. */
export function workerKey(named: KeyField, worker: WorkerPolicy): KeyTarget {
  const key = keyOf(named, limiterOf(worker));
  return {
    words: "key" in named ? named.key : named.parts.join(" "),
    json: named,
    // Parts that no rule has are valid too.
    hint: "key" in named ? "" : " Check the policy, and the parts and their order.",
    async report() {
      const [count, expiresAt, { limit, remaining }, { allowed, retryAfter }] = await Promise.all([
        key.get(),
        key.expiresAt(),
        // Cost 0 for what remains now; cost 1 for whether a hit would be allowed.
        key.peek(0),
        key.peek(1),
      ]);
      const wait = Number.isFinite(retryAfter) ? retryAfter : null;
      return { count, limit, remaining, allowed, retryAfter: wait, expiresAt };
    },
    reset: (reservations) => key.reset({ reservations }),
    ban: (length) => key.ban(length as never),
    unban: () => key.unban(),
    close() {},
  };
}

function keyOf(named: KeyField, limiter: RemoteLimiter): Key {
  if ("parts" in named) return limiter.ofRule(named.parts);
  const { key } = named;
  return {
    get: () => limiter.get(key),
    expiresAt: () => limiter.expiresAt(key),
    peek: (cost) => limiter.peek(key, cost),
    reset: (options) => limiter.reset(key, options),
    ban: (length) => limiter.ban(key, length),
    unban: () => limiter.unban(key),
  };
}

function limiterOf(worker: WorkerPolicy): RemoteLimiter {
  try {
    return new RemoteLimiter(worker);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
