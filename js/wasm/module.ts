import { TollgateError } from "../errors/error.ts";
import { compiled } from "./compiled.ts";

const modules = /* @__PURE__ */ new Map<unknown, WebAssembly.Module>();

/** Compiles a wasm once. Throws `wasm_blocked`, in every engine, if the page's Content-Security-Policy forbids it. */
export function allowed(wasm: unknown): WebAssembly.Module {
  let module = modules.get(wasm);
  if (module === undefined) {
    try {
      module = compiled(wasm as string);
    } catch (cause) {
      if (!/Content.Security.Policy|unsafe-eval|CSP/i.test(String(cause))) throw cause;
      const message =
        "this page's Content-Security-Policy forbids WebAssembly; add 'wasm-unsafe-eval' to its script-src";
      throw new TollgateError("wasm_blocked", message, { cause });
    }
    modules.set(wasm, module);
  }
  return module;
}
