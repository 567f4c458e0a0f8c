import type { ReadCall } from "../policy/policies.ts";
import type { Costs } from "../types.ts";
import { hitKind, schema } from "../wasm/generated.ts";
import type { SlotLimiter } from "../wasm/slot-limiter.ts";

/** A reservation to be made. Its end is set when the time is known. */
export interface Reserved {
  readonly bits: readonly number[];
  readonly ttl: number;
  end: number;
}

/**
 * Hits, peeks or reserves, by the kind, with the policies of the call if it has any. `costs` are those by position; without
 * them `cost` is for all policies. Sets the end of a reservation, and returns a status.
 */
export function hitSlot(
  limiter: SlotLimiter,
  slot: number,
  cost: Costs,
  costs: readonly number[] | undefined,
  call: ReadCall | undefined,
  now: number,
  kind: number,
  reserved?: Reserved,
): number {
  const { instance } = limiter;
  const numbers = call?.numbers ?? [];
  instance.writeCall(numbers);
  if (costs !== undefined) instance.writeCosts(costs);
  if (reserved !== undefined) {
    reserved.end = Math.floor(now) + reserved.ttl;
    instance.writeReservation(reserved.bits, reserved.ttl, reserved.end);
  }
  const isByPolicy = costs !== undefined;
  return limiter.run(({ hit_with }, index, generation) =>
    hit_with(
      index,
      generation,
      slot,
      isByPolicy ? 0 : (cost as number),
      now,
      numbers.length / schema.perPolicy,
      isByPolicy ? kind + hitKind.byPolicy : kind,
    ),
  );
}
