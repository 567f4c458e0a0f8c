/** A wasm as text for `compiled`; in workerd, where wasm is a module of its own, that module. */
declare module "*.wasm" {
  const inlined: string;
  export default inlined;
}
