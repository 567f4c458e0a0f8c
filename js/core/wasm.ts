import { TollgateError } from "../error.ts";
import type { Exports } from "./exports.ts";
import { compiled } from "./module.ts";

let exported: Exports | undefined;
let registry: FinalizationRegistry<() => void> | undefined;

/** What Rust exports. The module is compiled when it is first needed, not when the package is imported. */
export function rust(): Exports {
  if (exported === undefined) exported = instantiate();
  return exported;
}

/** Rust's memory as it lies now. */
export const buffer = (): ArrayBuffer => rust().memory.buffer;

/** Drops what Rust holds for something, once that is gone, where the platform can tell. */
export function dropWith(owner: object, drop: () => void): void {
  if (registry === undefined && typeof FinalizationRegistry !== "undefined")
    registry = new FinalizationRegistry((drop) => drop());
  registry?.register(owner, drop, owner);
}

/** Does not, since it was dropped already. */
export const dropped = (owner: object): void => void registry?.unregister(owner);

const instantiate = () => new WebAssembly.Instance(allowed(compiled), {}).exports as unknown as Exports;

/** A page's policy against wasm shows as an error that names it, in every engine. */
function allowed(compile: () => WebAssembly.Module): WebAssembly.Module {
  try {
    return compile();
  } catch (cause) {
    if (!/Content.Security.Policy|unsafe-eval|CSP/i.test(String(cause))) throw cause;
    throw new TollgateError(
      "wasm_blocked",
      "this page's Content-Security-Policy forbids WebAssembly; add 'wasm-unsafe-eval' to its script-src",
      { cause },
    );
  }
}
