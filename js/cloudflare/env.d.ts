declare namespace Cloudflare {
  /** The bindings of wrangler.toml. */
  interface Env {
    LIMITERS: DurableObjectNamespace<import("./object.ts").RateLimiterObject>;
  }

  interface GlobalProps {
    mainModule: typeof import("./worker.ts");
    durableNamespaces: "RateLimiterObject";
  }
}

interface Env extends Cloudflare.Env {}

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}
