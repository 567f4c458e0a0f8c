import { unpublished } from "../events/caller.ts";
import type { Publisher } from "../events/publisher.ts";
import type { Costs, Policies } from "../types.ts";
import { type AllHits, checkLimiter, type HitOf, publishAll, type Summing, summed } from "./several-keys.ts";
import { type UndoableHit, undoHit } from "./undo.ts";

/** The part of a limiter elsewhere that a decision over several keys needs. */
interface Undoing {
  readonly publisher?: Publisher;
  hitUndoable(key: string, cost: Costs | undefined, policies: Policies | undefined): Promise<UndoableHit>;
}

/** Hits each key, all at once, and undoes the hits if a key denies or fails. */
export async function hitAllElsewhere<Limiter extends Undoing>(
  hits: readonly HitOf<Limiter, string>[],
  summing: Summing<Limiter>,
): Promise<AllHits> {
  const [sums, spread] = summed<Limiter, string>(hits, check, summing);
  const start = performance.now();
  const outcomes = await Promise.allSettled(
    sums.map(({ limiter, key, cost, policies }) =>
      unpublished(() => limiter.hitUndoable(key, cost, policies)),
    ),
  );
  const made = outcomes.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = outcomes.find((each) => each.status === "rejected");
  const allowed = failed === undefined && made.every(({ decision }) => decision.allowed);
  if (allowed) for (const { keep } of made) keep?.();
  else await Promise.all(made.map(({ undo }) => undo && undoHit(undo)));
  if (failed !== undefined) throw failed.reason;
  const decisions = made.map(({ decision }) => decision);
  publishAll(sums, decisions, allowed, performance.now() - start);
  return { allowed, decisions: spread(decisions) };
}

const check = (limiter: Undoing): void =>
  checkLimiter(limiter, false, "a RedisLimiter, StoreLimiter or RemoteLimiter; see docs/several-keys.md");
