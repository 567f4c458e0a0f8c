import { inWords, TollgateError } from "../errors/error.ts";

/** Returns the error for an invalid option, with what to use instead. */
export const wrongOption = (name: string, found: unknown, expected: string): TollgateError =>
  new TollgateError("invalid_option", `${name}: ${inWords(found)} is not accepted; use ${expected}`);

/** Returns the error for an option in a place where it has no effect, with what to use instead. */
export const misplacedOption = (name: string, place: string, expected: string): TollgateError =>
  new TollgateError("invalid_option", `${name} is not accepted ${place}; use ${expected}`);
