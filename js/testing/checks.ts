import { inWords } from "../errors/error.ts";

/** Throws an error that says what a store must do, unless it did. */
export function check(isTrue: boolean, rule: string): asserts isTrue {
  if (!isTrue) throw new Error(`this store is not fit for a limiter: ${rule}`);
}

/** Checks that a value is the expected one. */
export function checkIs(found: unknown, expected: unknown, rule: string): void {
  check(Object.is(found, expected), `${rule} (${inWords(found)} instead of ${inWords(expected)})`);
}
