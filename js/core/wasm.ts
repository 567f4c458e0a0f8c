import * as glue from "../../build/js/tollgate_bg.js";
import { TollgateError } from "../error.ts";
import { compiled } from "./module.ts";

let memory: WebAssembly.Memory | undefined;

/** The Rust classes. The module is compiled when it is first needed, not when the package is imported. */
export function rust(): typeof glue {
  if (memory === undefined) memory = instantiate();
  return glue;
}

/** The memory that the Rust classes live in, as it lies now. */
export const buffer = (): ArrayBuffer => (memory as WebAssembly.Memory).buffer;

function instantiate(): WebAssembly.Memory {
  const imports = { "./tollgate_bg.js": glue as unknown as WebAssembly.ModuleImports };
  const { exports } = new WebAssembly.Instance(allowed(compiled), imports);
  glue.__wbg_set_wasm(exports);
  (exports["__wbindgen_start"] as (() => void) | undefined)?.();
  return exports["memory"] as WebAssembly.Memory;
}

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
