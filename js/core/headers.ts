import wasm from "../../build/headers/tollgate_bg.wasm";
import { instance } from "./instance.ts";

/** What Rust exports: `src/headers/js.rs` says what each does. Those that write answer how many bytes there are. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  area(): number;
  headers(
    policies: number,
    allowed: number,
    limit: number,
    remaining: number,
    retryAfter: number,
    resetAfter: number,
    policy: number,
    legacy: number,
  ): number;
  problem(violated: number): number;
}

let exported: Exports | undefined;

/** The text that Rust writes about these policies, of which numbers are five each. */
export function told(
  numbers: readonly number[],
  names: readonly string[],
  write: (rust: Exports) => number,
): string {
  exported ??= instance<Exports>(wasm);
  const { memory } = exported;
  // The layout of the area, for 32 policies: their numbers, 64 bytes for each name, the text.
  const at = exported.area();
  new Float64Array(memory.buffer, at).set(numbers);
  const padded = names.map((name) => name.padEnd(64, "\0")).join("");
  new TextEncoder().encodeInto(padded, new Uint8Array(memory.buffer, at + 1280));
  return new TextDecoder().decode(new Uint8Array(memory.buffer, at + 3328, write(exported)));
}
