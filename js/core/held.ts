import type { TollgateError } from "../error.ts";
import { type ReadPolicies, tooSlow } from "../policies.ts";
import { answered, giveNumbers } from "./border.ts";
import { dropWith, rust } from "./wasm.ts";

/** Where Rust has policies. It is given them when it is first asked. */
export function held(policies: ReadPolicies): number {
  policies.held ??= give(policies);
  return policies.held;
}

function give(policies: ReadPolicies): number {
  giveNumbers(policies.numbers);
  const { policies: take, drop_policies: drop } = rust();
  return kept(policies, take(), drop, tooSlow);
}

/** Where Rust has what it made of policies, to be dropped with them; nowhere if it refused the limit of one. */
export function kept(
  policies: ReadPolicies,
  made: number,
  drop: (made: number) => void,
  wrong: (limit: unknown) => TollgateError,
): number {
  if (made === 0) throw wrong(policies.limits[answered()]);
  dropWith(policies, () => drop(made));
  return made;
}
