import { __wbg_reset_state, initSync, Leases as WasmLeases } from "../../build/lease/tollgate.js";
import wasm from "../../build/lease/tollgate_bg.wasm";
import { allowed } from "../core/module.ts";
import type { LeaseCore } from "../leases.ts";

/** How many keys a limiter knows something of. */
const knownKeys = 10_000;

/** How many instances of the wasm there were, and whether the last one can be used. */
let instances = 0;
let isUsable = false;

/** Makes sure that there is an instance. After a trap a new one takes over. */
function start(): void {
  if (isUsable) return;
  if (instances > 0) __wbg_reset_state();
  initSync({ module: allowed(wasm) });
  instances += 1;
  isUsable = true;
}

/**
 * Returns the arithmetic of leases of so many milliseconds. A trap loses what was held, which is charged at its end, and
 * costs no hit: the issuer is asked.
 */
export function leaseCore(ttl: number): LeaseCore {
  const made = () => {
    start();
    // The API does not say for how long a denial is certain.
    return { leases: new WasmLeases(knownKeys, ttl, false), instance: instances };
  };
  let own = made();
  const run = <Result>(work: (leases: WasmLeases) => Result, otherwise: Result): Result => {
    try {
      if (!isUsable || own.instance !== instances) own = made();
      return work(own.leases);
    } catch {
      // The wasm throws nothing by itself.
      isUsable = false;
      return otherwise;
    }
  };
  return {
    denied: (...given) => run((leases) => leases.denied(...given), undefined),
    hit: (...given) => run((leases) => leases.hit(...given), "?"),
    spend: (...given) => run((leases) => leases.spend(...given), undefined),
    replied: (...given) => run((leases) => leases.replied(...given), 0),
    failed: (...given) => run((leases) => leases.failed(...given), undefined),
    giveBack: (...given) => run((leases) => leases.giveBack(...given), undefined),
  };
}
