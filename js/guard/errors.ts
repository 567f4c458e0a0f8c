import { TollgateError } from "../tollgate-error.ts";

/** Returns the error for an option that is not accepted. Shorter than the package's own, which is not shared. */
export const wrongOption = (name: string, found: unknown, expected: string): TollgateError =>
  new TollgateError("invalid_option", `${name}: ${inWords(found)} is not accepted; use ${expected}`);

/** A value as an error repeats it: texts and numbers as they are, and of the rest the type. */
export const inWords = (value: unknown): string =>
  typeof value === "string"
    ? JSON.stringify(value.slice(0, 64))
    : Object(value) === value
      ? typeof value
      : String(value);
