import { __wbg_reset_state, initSync, Leases as WasmLeases } from "../../build/lease/tollgate.js";
import wasm from "../../build/lease/tollgate_bg.wasm";
import type { LeaseCore } from "../lease/leases.ts";
import { allowed } from "../wasm/module.ts";
import { Remade, type WasmModule } from "../wasm/wasm-module.ts";

/** The most keys whose leases or recent traffic a limiter remembers. */
const maxKeys = 10_000;

const leaseModule: WasmModule<unknown> = {
  start: () => initSync({ module: allowed(wasm) }),
  reset: __wbg_reset_state,
  generation: 0,
};

/**
 * Returns the leases of a holder in wasm, with a duration of `ttl` milliseconds. A trap loses them, and they are charged
 * at their ends; it fails no hit, since the hit is sent to the issuer.
 */
export function leaseCore(ttl: number): LeaseCore {
  // Denials are not remembered: the API does not say how long one is certain.
  const core = new Remade(leaseModule, () => new WasmLeases(maxKeys, ttl, false));
  const run = <Result>(work: (leases: WasmLeases) => Result, otherwise: Result): Result => {
    try {
      return core.call(work);
    } catch {
      // The wasm has no errors of its own, so this was a trap.
      return otherwise;
    }
  };
  return {
    denied: (...args) => run((leases) => leases.denied(...args), undefined),
    hit: (...args) => run((leases) => leases.hit(...args), "?"),
    spend: (...args) => run((leases) => leases.spend(...args), undefined),
    replied: (...args) => run((leases) => leases.replied(...args), 0),
    failed: (...args) => run((leases) => leases.failed(...args), undefined),
    giveBack: (...args) => run((leases) => leases.giveBack(...args), undefined),
  };
}
