declare namespace Cloudflare {
  /** The bindings of wrangler.toml. */
  interface Env extends TollgateEnv {}

  interface GlobalProps {
    mainModule: typeof import("./worker.ts");
    durableNamespaces: "RateLimiterObject";
  }
}

type TollgateEnv = import("./env.ts").TollgateEnv;

interface Env extends Cloudflare.Env {}

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

declare module "*.html" {
  const text: string;
  export default text;
}

declare module "*?raw" {
  const text: string;
  export default text;
}
