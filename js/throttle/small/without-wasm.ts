// The small core as JavaScript, a file of its own: a page loads it where WebAssembly is forbidden.

import { instantiate as made } from "../../../build/throttle/without-wasm.js";
import type { KeyExports } from "../../wasm/one-key.ts";

/** Makes an instance. */
export const instantiate: () => KeyExports = made;
