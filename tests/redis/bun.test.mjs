// Bun's own client, in Bun.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { bin } from "../../scripts/lib/paths.mjs";
import { outputOf } from "../../scripts/lib/run.mjs";
import { withServer } from "./lib/setting.mjs";

const setting = withServer();
const program = fileURLToPath(new URL("lib/bun.mjs", import.meta.url));
const skip = outputOf(bin("bun"), ["--version"]) === null && "Bun does not run here";

test("its own client decides, and nothing is counted twice or lost", { skip }, async () => {
  const { stdout } = await promisify(execFile)(bin("bun"), [program, String(setting.server.port)]);
  assert.deepEqual(JSON.parse(stdout), { allowed: 20, many: 50, after: 5, unanswered: 0, scriptLoads: 2 });
});
