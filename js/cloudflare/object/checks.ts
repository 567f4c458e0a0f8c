import { invalidField, keyAccepts, TollgateError, wrongAmount, wrongInc } from "../../errors/error.ts";
import { wrongParts } from "../../http/rule-key.ts";
import { ttlExpected } from "../../policy/durations.ts";
import type { Policies } from "../../types.ts";
import { reservationText } from "../../wasm/generated.ts";
import type { Operation } from "../../wasm/operations.ts";

/** Checks that an amount is a number: RPC checks no types, and wasm converts almost any value to a number. */
export function checkAmount(operation: Operation, amount: unknown): asserts amount is number {
  if (typeof amount === "number") return;
  throw operation === "inc" ? wrongInc(amount) : wrongAmount(operation === "set" ? "count" : "cost", amount);
}

/** Checks that the texts of a message from the Worker are strings; Rust parses them. */
export function checkTexts(...texts: readonly unknown[]): void {
  if (texts.some((text) => typeof text !== "string"))
    throw new TollgateError(
      "invalid_operation",
      "the operation, the policies, reports and ids must be strings, the policies in JSON",
    );
}

/** Checks that a reservation's `ttl` can be written as JSON; Rust checks its value. */
export function checkTtl(ttl: unknown): void {
  if (typeof ttl !== "string" && !Number.isFinite(ttl))
    throw invalidField("invalid_option", "ttl", ttl, ttlExpected());
}

/** Checks that the id of a reservation is a string; Rust parses it. */
export function checkId(id: unknown): asserts id is string {
  if (typeof id !== "string" || !id.isWellFormed())
    throw invalidField("invalid_reservation", "id", id, reservationText);
}

/** Checks the option `reservations` of `reset`. */
export function checkReservations(reservations: unknown): void {
  if (reservations !== undefined && typeof reservations !== "boolean")
    throw invalidField("invalid_option", "reservations", reservations, "a boolean");
}

/** Checks that a key can be encoded as UTF-8, and returns it as a field; Rust checks its length. */
export function keyField(key: unknown): { readonly key: string } {
  if (typeof key !== "string" || !key.isWellFormed()) throw wrongKey(key);
  return { key };
}

/**
 * Returns the error of an item whose key has a lone surrogate. Rust reads all of them alike, so different keys would be
 * one.
 */
export function brokenKey(item: unknown): TollgateError | undefined {
  const { key, parts, id } = (item ?? {}) as { readonly [field in "key" | "parts" | "id"]?: unknown };
  if (parts !== undefined && parts !== null)
    return [parts].flat().some(isBroken) ? wrongParts(parts) : undefined;
  return [key ?? id].some(isBroken) ? wrongKey(key ?? id) : undefined;
}

const isBroken = (text: unknown) => typeof text === "string" && !text.isWellFormed();

const wrongKey = (key: unknown) =>
  invalidField("invalid_key", "key", key, `${keyAccepts}, without lone surrogates`);

/** Checks that a policy's name is a string or `undefined`. */
export function checkName(name: unknown): asserts name is string | undefined {
  if (name === undefined || typeof name === "string") return;
  throw invalidField("unknown_policy", "policy", name, "the name of one of the policies");
}

/** Returns the names of policies as a list, from one name or a list. */
export function policyNames(policy: unknown): string[] {
  const names: unknown[] = Array.isArray(policy) ? policy : [policy];
  for (const name of names) {
    if (typeof name !== "string")
      throw invalidField("unknown_policy", "policy", name, "the name of a policy, or a list");
  }
  return names as string[];
}

/** Returns policies as JSON. Throws if a value cannot be written as JSON. */
export function policiesAsJson(policies: Policies): string {
  try {
    return JSON.stringify(policies) ?? "null";
  } catch {
    throw invalidField("invalid_policy", "policies", policies, "a policy, or a list of them");
  }
}
