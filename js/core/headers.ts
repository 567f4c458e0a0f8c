import wasm from "../../build/headers/tollgate_bg.wasm";
import { type ReadPolicies, tooSlow } from "../policies.ts";
import { instance } from "./instance.ts";

/** What Rust exports: `src/headers/js.rs` says what each does. Those that write answer how many bytes there are. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  area(): number;
  refused(policies: number): number;
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

/** The text that Rust writes about these policies. */
export function told({ numbers, limits, names }: ReadPolicies, write: (rust: Exports) => number): string {
  exported ??= instance<Exports>(wasm);
  const { buffer } = exported.memory;
  // The layout of the area, for 32 policies: five numbers of each, 64 bytes for each name, the text.
  const at = exported.area();
  new Float64Array(buffer, at).set(numbers);
  const padded = names.map((name) => name.padEnd(64, "\0")).join("");
  new TextEncoder().encodeInto(padded, new Uint8Array(buffer, at + 1280));
  const position = exported.refused(names.length);
  if (position >= 0) throw tooSlow(limits[position]);
  return new TextDecoder().decode(new Uint8Array(buffer, at + 3328, write(exported)));
}
