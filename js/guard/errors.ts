import { TollgateError } from "../errors/tollgate-error.ts";

/** Returns the error for an invalid option. It is shorter than the package's own, which adapters do not share. */
export const wrongOption = (name: string, found: unknown, expected: string): TollgateError =>
  new TollgateError("invalid_option", `${name}: ${inWords(found)} is not accepted; use ${expected}`);

/** Returns a value for an error message: strings and numbers as they are, and the type of others. */
export const inWords = (value: unknown): string =>
  typeof value === "string"
    ? JSON.stringify(value.slice(0, 64))
    : Object(value) === value
      ? typeof value
      : String(value);
