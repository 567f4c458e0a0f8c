import { type RemoteKey, RemoteLimiter } from "../client/index.ts";
import type { KeyField } from "../http/rule-key.ts";
import { UsageError } from "./errors.ts";
import { type Denial, type KeyTarget, limitOrNone, type PolicyDecision } from "./key-target.ts";
import { requested, type WorkerPlace } from "./worker-api.ts";

/** A Worker, and the name of one of its policies. */
interface WorkerPolicy extends WorkerPlace {
  readonly policy: string | undefined;
}

/** The operations on one key that the command needs. */
type Key = Pick<
  RemoteKey,
  "get" | "expiresAt" | "peek" | "reset" | "ban" | "unban" | "except" | "exceptions"
>;

/** Returns a key of a deployed Worker. */
export function workerKey(named: KeyField, worker: WorkerPolicy): KeyTarget {
  // Checks the address and the token; a story needs no policy.
  const limiter = limiterOf({ ...worker, policy: worker.policy ?? "any" });
  const key = keyOf(named, limiter);
  return {
    words: "key" in named ? named.key : named.parts.join(" "),
    json: named,
    place: new URL(worker.url).host,
    // Parts that no rule has are valid too.
    hint: "key" in named ? "" : " Check the policy, and the parts and their order.",
    async report() {
      const [count, expiresAt, { limit, remaining }, { allowed, retryAfter, reason }] = await Promise.all([
        key.get(),
        key.expiresAt(),
        // Cost 0 for what remains now; cost 1 for whether a hit would be allowed.
        key.peek(0),
        key.peek(1),
      ]);
      const wait = Number.isFinite(retryAfter) ? retryAfter : null;
      const [most, left] = [limitOrNone(limit), limitOrNone(remaining)];
      const why = reason === undefined ? {} : { reason };
      return { count, limit: most, remaining: left, allowed, ...why, retryAfter: wait, expiresAt };
    },
    story: () => storyOf(named, worker),
    reset: (reservations) => key.reset({ reservations }),
    ban: (length) => key.ban(length as never),
    unban: async () => ({ wasBanned: await key.unban(), others: [] }),
    except: async (exception, end, note) => {
      if (note !== undefined) throw new UsageError("--note is for Redis");
      return key.except(exception, end);
    },
    note: async () => undefined,
    exception: () => key.exceptions(),
    close() {},
  };
}

/** What the endpoint for one key returns, as far as it is shown. */
interface Why {
  readonly policies: readonly PolicyDecision[];
  readonly denials: readonly (Omit<Denial, "reason"> & { readonly banned: boolean })[];
}

async function storyOf(named: KeyField, { policy, ...place }: WorkerPolicy) {
  const query = new URLSearchParams("key" in named ? { key: named.key } : {});
  for (const part of "parts" in named ? [named.parts].flat() : []) query.append("parts", part);
  if (policy !== undefined) query.append("policy", policy);
  const { policies, denials } = (await requested(place, `why?${query}`)) as Why;
  const shown = denials.map(({ banned, ...denial }) => (banned ? { ...denial, reason: "banned" } : denial));
  return { now: policies, denials: shown };
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
    except: (exception, end) =>
      exception === null ? limiter.except(key, null) : limiter.except(key, exception, end ?? {}),
    exceptions: () => limiter.exceptions(key),
  };
}

function limiterOf(worker: WorkerPlace & { readonly policy: string }): RemoteLimiter {
  try {
    return new RemoteLimiter(worker);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
