import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [cloudflareTest({ wrangler: { configPath: "wrangler.toml" } })],
  test: {
    include: ["tests/workerd/**/*.test.ts"],
    testTimeout: 120_000,
    maxWorkers: 2,
    silent: "passed-only",
  },
});
