import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { unstable_readConfig as readConfig } from "wrangler";

/** As in the package: workerd takes wasm as a module of its own. */
const compiled = { find: /^\.\/compiled\.ts$/, replacement: "./compiled.workerd.ts" };

/** A machine that is busy with other things is not what is tested. */
const { vars } = readConfig({ config: "wrangler.toml" });
const TOLLGATE = { ...vars["TOLLGATE"], timeout: "1m" };

export default defineConfig({
  resolve: { alias: [compiled] },
  plugins: [
    cloudflareTest({ wrangler: { configPath: "wrangler.toml" }, miniflare: { bindings: { TOLLGATE } } }),
  ],
  test: {
    include: ["tests/**/*.test.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    maxWorkers: 2,
    silent: "passed-only",
  },
});
