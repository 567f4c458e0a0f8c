import inlined from "../../build/js/inline.js";

/** The module from the text it is inlined as: nothing to fetch, nothing to configure. */
export function compiled(): WebAssembly.Module {
  const text = atob(inlined);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return new WebAssembly.Module(bytes);
}
