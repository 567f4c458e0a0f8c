import { TollgateError } from "../errors/error.ts";
import { compiled } from "./compiled.ts";

/** Compiles a wasm. Throws `wasm_blocked`, in every engine, if the page's Content-Security-Policy forbids it. */
export function allowed(wasm: unknown): WebAssembly.Module {
  try {
    return compiled(wasm as string);
  } catch (cause) {
    if (!/Content.Security.Policy|unsafe-eval|CSP/i.test(String(cause))) throw cause;
    const message =
      "this page's Content-Security-Policy forbids WebAssembly; add 'wasm-unsafe-eval' to its script-src";
    throw new TollgateError("wasm_blocked", message, { cause });
  }
}
