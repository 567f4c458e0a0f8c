import { TollgateError } from "./error.ts";

/** The codes of errors of a store, of its values, or of the wasm. All others are errors of the caller. */
const storeCodes: readonly string[] = [
  "unanswered",
  "contended",
  "invalid_state",
  "unsupported_version",
  "out_of_memory",
  "state_lost",
];

/** Returns true for an error after which `onError` and `fallback` decide. */
export const isStoreError = (error: unknown): boolean =>
  error instanceof TollgateError ? storeCodes.includes(error.code) : true;
