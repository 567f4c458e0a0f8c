// Runs the command as it is installed, and says at the end how much memory it took.

import { writeFileSync } from "node:fs";
import { argv } from "node:process";

const [, , report, ...args] = argv;
const program = new URL("../../dist/command.js", import.meta.url);
process.argv = [argv[0], program.pathname, ...args];
const started = performance.now();
process.on("exit", () => {
  const milliseconds = performance.now() - started;
  writeFileSync(report, JSON.stringify({ milliseconds, memory: process.resourceUsage().maxRSS * 1_024 }));
});
await import(program);
