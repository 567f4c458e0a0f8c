import { __wbg_reset_state, initSync, Leases as WasmLeases } from "../../build/lease/tollgate.js";
import wasm from "../../build/lease/tollgate_bg.wasm";
import type { LeaseCore } from "../lease/leases.ts";
import { allowed } from "../wasm/module.ts";

/** The most keys whose leases or recent traffic a limiter remembers. */
const maxKeys = 10_000;

/** How many instances of the wasm were created. */
let instances = 0;
/** Whether the last one is usable: it has not trapped. */
let isUsable = false;

/** Creates an instance of the wasm unless one is usable. */
function start(): void {
  if (isUsable) return;
  if (instances > 0) __wbg_reset_state();
  initSync({ module: allowed(wasm) });
  instances += 1;
  isUsable = true;
}

/**
 * Returns the leases of a holder in wasm, with a duration of `ttl` milliseconds. A trap loses them, and they are charged
 * at their ends; it fails no hit, since the hit is sent to the issuer.
 */
export function leaseCore(ttl: number): LeaseCore {
  const create = () => {
    start();
    // Denials are not remembered: the API does not say how long one is certain.
    return { leases: new WasmLeases(maxKeys, ttl, false), instance: instances };
  };
  let current = create();
  const run = <Result>(work: (leases: WasmLeases) => Result, otherwise: Result): Result => {
    try {
      if (!isUsable || current.instance !== instances) current = create();
      return work(current.leases);
    } catch {
      // The wasm has no errors of its own, so this is a trap.
      isUsable = false;
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
