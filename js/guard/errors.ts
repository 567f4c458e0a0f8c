import { inWords, TollgateError } from "../errors/error.ts";

/** Returns the error for an invalid option, with what to use instead. */
export const wrongOption = (name: string, found: unknown, expected: string): TollgateError =>
  new TollgateError("invalid_option", `${name}: ${inWords(found)} is not accepted; use ${expected}`);
