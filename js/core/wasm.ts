import wasm from "../../build/js/tollgate_bg.wasm";
import type { Exports } from "./exports.ts";
import { instance } from "./instance.ts";

let exported: Exports | undefined;
let registry: FinalizationRegistry<() => void> | undefined;

/** What Rust exports. The module is compiled when it is first needed, not when the package is imported. */
export function rust(): Exports {
  if (exported === undefined) exported = instance<Exports>(wasm);
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
