import { TollgateError } from "../errors/error.ts";
import { compiled } from "./compiled.ts";

/**
 * Compiles a wasm. Throws `wasm_blocked`, in every engine, if the page's Content-Security-Policy forbids it, or if the
 * platform has no WebAssembly.
 */
export function allowed(wasm: unknown): WebAssembly.Module {
  try {
    return compiled(wasm as string);
  } catch (cause) {
    const hasNone = typeof WebAssembly === "undefined";
    if (!hasNone && !/Content.Security.Policy|unsafe-eval|CSP/i.test(String(cause))) throw cause;
    const message = hasNone
      ? "there is no WebAssembly here"
      : "this page's Content-Security-Policy forbids WebAssembly; add 'wasm-unsafe-eval' to its script-src";
    throw new TollgateError("wasm_blocked", `${message}, or import from "tollgate/js"`, { cause });
  }
}

/** Compiles a wasm without imports as `allowed` does, and returns the exports of a new instance. */
export function instantiated<Exports>(wasm: unknown): Exports {
  const module = allowed(wasm);
  return new WebAssembly.Instance(module).exports as Exports;
}
