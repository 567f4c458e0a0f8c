import type { AllHits, HitOf } from "./all-hits.ts";
import type { AsyncReservation } from "./async-reservation.ts";
import type { Costs } from "./types.ts";

/** The part of a limiter elsewhere that a decision over several keys needs. */
interface Reserving {
  reserve(key: string, cost: Costs | undefined, options: { readonly ttl: "5s" }): Promise<AsyncReservation>;
}

/** How long a key is held while the others are asked. What is not settled by then is charged. */
const ttl = "5s";

/** Reserves on each key, and settles all, with the next message to each key, or cancels all. */
export async function reserveAll(hits: readonly HitOf<Reserving, string>[]): Promise<AllHits> {
  const asked = await Promise.allSettled(
    hits.map(({ limiter, key, cost }) => limiter.reserve(key, cost, { ttl })),
  );
  const reservations = asked.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = asked.find((each) => each.status === "rejected");
  const allowed = failed === undefined && reservations.every((reservation) => reservation.allowed);
  if (allowed) for (const reservation of reservations) reservation.settleLater();
  // A message that is lost costs what was set aside, at its end.
  else await Promise.allSettled(reservations.map((reservation) => reservation.cancel()));
  if (failed !== undefined) throw failed.reason;
  return { allowed, decisions: reservations.map(({ decision }) => decision) };
}
