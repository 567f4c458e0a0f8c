import { invalidField } from "../errors/error.ts";
import { isInteger } from "./durations.ts";

/** How many digits after the point a decimal may have. */
const places = 12;

const form = new RegExp(`^(\\d{1,15})(?:\\.(\\d{1,${places}}))?$`);

/** The accepted decimals, in words. */
const decimalText = `a decimal string such as "0.0025" or "20", with at most ${places} digits after the point`;

/** Parses a decimal into an integer number of 10⁻¹², so that sums are exact; `undefined` if invalid. */
export function decimal(text: unknown): bigint | undefined {
  const [, whole, fraction = ""] = (typeof text === "string" && form.exec(text)) || [];
  return whole === undefined ? undefined : BigInt(whole + fraction.padEnd(places, "0"));
}

/** Parses a decimal of a field; throws `invalid_option` if invalid. */
export function checkedDecimal(field: string, text: unknown): bigint {
  const parsed = decimal(text);
  if (parsed === undefined) throw invalidField("invalid_option", field, text, decimalText);
  return parsed;
}

/** Returns an amount of 10⁻¹² as an integer, rounded up; at most the largest safe integer. */
export function roundedUp(amount: bigint): number {
  const unit = 10n ** BigInt(places);
  return Math.min(Number((amount + unit - 1n) / unit), Number.MAX_SAFE_INTEGER);
}

/**
 * Returns an amount of dollars in millionths, which is the unit of a policy named `usd`. A fraction of a millionth is
 * rounded up.
 *
 * @throws TollgateError if the amount is no decimal string, or more than 9,007,199,254.740991 dollars.
 *
 * @example
 * ```ts
 * import { usd } from "tollgate/ai";
 *
 * console.log(usd("0.0025")); // => 2500
 * console.log(usd("20")); // => 20000000
 * ```
 */
export function usd(amount: string): number {
  const millionths = roundedUp(checkedDecimal("usd", amount) * 1_000_000n);
  if (millionths === Number.MAX_SAFE_INTEGER)
    throw invalidField("invalid_option", "usd", amount, "at most 9007199254 dollars");
  return millionths;
}

/**
 * Returns millionths of a dollar as a decimal string of dollars, with two digits after the point or as many as it needs: the
 * inverse of `usd`.
 *
 * @throws TollgateError if it is no integer of at least 0.
 *
 * @example
 * ```ts
 * import { dollars } from "tollgate/ai";
 *
 * console.log(dollars(19_860_000)); // => "19.86"
 * console.log(dollars(2_500)); // => "0.0025"
 * ```
 */
export function dollars(millionths: number): string {
  if (!isInteger(millionths))
    throw invalidField(
      "invalid_option",
      "millionths",
      millionths,
      "millionths of a dollar, an integer of at least 0",
    );
  const digits = String(millionths).padStart(7, "0");
  return `${digits.slice(0, -6)}.${digits.slice(-6).replace(/0{1,4}$/, "")}`;
}
