import { invalidField, inWords, reserveOnly, type TollgateError, worded } from "../errors/error.ts";
import { banOnlyText, noBanText, policyRequiredText, unknownBanText } from "../wasm/generated.ts";
import { durationExpected, milliseconds } from "./durations.ts";
import type { ReadPolicies } from "./policies.ts";

/** What is known of policies: the name and the algorithm of each. */
type Named = Pick<ReadPolicies, "origins">;

/** Returns whether one of the policies is a ban. */
export const hasBan = ({ origins }: Named): boolean => origins.some(({ algorithm }) => algorithm === "ban");

/** Returns the position of a ban, by its name where there are several. */
export function banPosition({ origins }: Named, name: string | undefined): number {
  const bans = origins.filter(({ algorithm }) => algorithm === "ban");
  const found = name === undefined && bans.length === 1 ? bans[0] : bans.find((ban) => ban.name === name);
  if (found !== undefined) return origins.indexOf(found);
  const text = bans.length === 0 ? noBanText : name === undefined ? policyRequiredText : unknownBanText;
  const known = bans.map((ban) => ban.name).join(", ");
  throw worded("unknown_policy", text, { found: inWords(name), known });
}

/** Parses how long a ban lasts into milliseconds. */
export function banLength(length: unknown): number {
  const time = milliseconds(length);
  if (time === undefined) throw invalidField("invalid_option", "for", length, durationExpected);
  return time;
}

/** Returns the error for an operation on a policy that counts reservations alone, or denials. */
export function uncountable({ origins }: Named, position: number, operation: string): TollgateError {
  const { name, algorithm } = origins[position] ?? {};
  if (algorithm !== "ban") return reserveOnly(name, operation);
  return worded("ban_only", banOnlyText, { policy: inWords(name), operation });
}
