import { TollgateError } from "../error.ts";
import { compiled } from "./module.ts";

/** What a wasm exports. A page's policy against wasm shows as an error that names it, in every engine. */
export function instance<Exports>(wasm: string): Exports {
  return new WebAssembly.Instance(allowed(wasm), {}).exports as Exports;
}

function allowed(wasm: string): WebAssembly.Module {
  try {
    return compiled(wasm);
  } catch (cause) {
    if (!/Content.Security.Policy|unsafe-eval|CSP/i.test(String(cause))) throw cause;
    throw new TollgateError(
      "wasm_blocked",
      "this page's Content-Security-Policy forbids WebAssembly; add 'wasm-unsafe-eval' to its script-src",
      { cause },
    );
  }
}
