/** A wasm, inlined as the text that `compiled` takes. Where wasm is a module of its own, it is that. */
declare module "*.wasm" {
  const inlined: string;
  export default inlined;
}
