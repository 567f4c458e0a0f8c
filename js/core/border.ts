import { buffer, rust } from "./wasm.ts";

/** Where Rust says in the area where its numbers lie; `src/js/area.rs` knows the same. */
const listAt = 72;

/** Gives Rust numbers. */
export function giveNumbers(numbers: readonly number[]): void {
  const at = rust().numbers(numbers.length);
  new Float64Array(buffer(), at >>> 0, numbers.length).set(numbers);
}

/** The numbers that Rust answered. */
export function numbers(): number[] {
  const [at, count] = new Uint32Array(buffer(), rust().area() + listAt, 2);
  return [...new Float64Array(buffer(), at, count)];
}

/** The single number that Rust answered. */
export const answered = (): number => new Float64Array(buffer(), rust().area())[0] as number;
