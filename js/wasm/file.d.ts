/** A wasm as text for `compiled`; in workerd, where wasm is a module of its own, that module. */
declare module "*.wasm" {
  const inlined: string;
  export default inlined;
}

/** A wasm as JavaScript. */
declare module "*/without-wasm.js" {
  export const instantiate: () => never;
}
