import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

/** As in the package: workerd takes wasm as a module of its own. */
const compiled = { find: /^\.\/compiled\.ts$/, replacement: "./compiled.workerd.ts" };

export default defineConfig({
  resolve: { alias: [compiled] },
  plugins: [cloudflareTest({ wrangler: { configPath: "wrangler.toml" } })],
  test: {
    include: ["tests/workerd/**/*.test.ts"],
    testTimeout: 120_000,
    maxWorkers: 2,
    silent: "passed-only",
  },
});
