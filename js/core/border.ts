import { buffer, rust } from "./wasm.ts";

/** Where the places of texts and numbers lie in the area; `src/js/area.rs` knows the same. */
const placesAt = 72;

const place = (which: number): number[] => [
  ...new Uint32Array(buffer(), rust().area() + placesAt + which, 2),
];

/** Gives Rust a text. */
export function giveText(text: string): void {
  const bytes = new TextEncoder().encode(text);
  const at = rust().text(bytes.length);
  new Uint8Array(buffer(), at >>> 0).set(bytes);
}

/** Gives Rust numbers. */
export function giveNumbers(numbers: readonly number[]): void {
  const at = rust().numbers(numbers.length);
  new Float64Array(buffer(), at >>> 0, numbers.length).set(numbers);
}

/** The text that Rust answered. */
export function text(): string {
  const [at, bytes] = place(0);
  return new TextDecoder().decode(new Uint8Array(buffer(), at, bytes));
}

/** The numbers that Rust answered. */
export function numbers(): number[] {
  const [at, count] = place(8);
  return [...new Float64Array(buffer(), at, count)];
}
