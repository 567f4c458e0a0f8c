import { unpublished } from "../events/caller.ts";
import type { Publisher } from "../events/publisher.ts";
import {
  type AllHits,
  checkLimiter,
  type HitOf,
  publishAll,
  type Summing,
  summed,
} from "../limiter/several-keys.ts";
import type { Costs } from "../types.ts";
import type { AsyncReservation } from "./async-reservation.ts";

/** The part of a limiter elsewhere that a decision over several keys needs. */
interface Reserving {
  readonly publisher?: Publisher;
  reserve(
    key: string,
    cost: Costs | undefined,
    options: { readonly ttl: "5s"; readonly policies: undefined },
  ): Promise<AsyncReservation>;
}

/** How long the reservations last while all keys are decided. One that is not settled by then is charged. */
const ttl = "5s";

/** Reserves on each key, and settles all, with the next message to each key, or cancels all. */
export async function reserveAll<Limiter extends Reserving>(
  hits: readonly HitOf<Limiter, string>[],
  summing: Summing<Limiter>,
): Promise<AllHits> {
  const [sums, spread] = summed<Limiter, string>(hits, check, summing);
  const start = performance.now();
  const outcomes = await Promise.allSettled(
    // Those of a RemoteLimiter are undefined: it accepts none.
    sums.map(({ limiter, key, cost, policies }) =>
      unpublished(() => limiter.reserve(key, cost, { ttl, policies: policies as undefined })),
    ),
  );
  const reservations = outcomes.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = outcomes.find((each) => each.status === "rejected");
  const allowed = failed === undefined && reservations.every((reservation) => reservation.allowed);
  if (allowed) for (const reservation of reservations) reservation.settleLater();
  // If a message is lost, the reservation is charged at its end.
  else await Promise.allSettled(reservations.map((reservation) => reservation.cancel()));
  if (failed !== undefined) throw failed.reason;
  const decisions = reservations.map(({ decision }) => decision);
  publishAll(sums, decisions, allowed, performance.now() - start);
  return { allowed, decisions: spread(decisions) };
}

const check = (limiter: Reserving): void =>
  checkLimiter(limiter, false, "a RedisLimiter, StoreLimiter or RemoteLimiter; see docs/several-keys.md");
