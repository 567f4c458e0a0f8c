import type { Arbitrary } from "fast-check";
import type { Policy } from "../../js/types.ts";

/** Limiters that are compared with the oracle. */
interface World {
  at(time: number): void;
  limiterOf(policies: readonly Policy[]): unknown;
  readonly leaveOut?: readonly string[];
  readonly isFree?: boolean;
}

/** A pool of policies, lists of them, and steps. */
interface Sequence {
  readonly pool: number;
}

export function sequences(lists: number, most?: number): Arbitrary<Sequence>;
export function compareWithOracle(world: World, sequence: Sequence): Promise<void>;
