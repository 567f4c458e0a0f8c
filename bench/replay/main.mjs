import { createReadStream, createWriteStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { runParts } from "../parts.mjs";
import { table } from "../results.mjs";
import { writeLog } from "./log.mjs";
import { measured } from "./measure.mjs";

const keys = 20_000;
const rounds = 3;
const million = 1_000_000;

const policy = ["--policy", '{"algorithm":"sliding_window","limit":60,"scale":"1m"}'];
const others = [
  ["--policy", '{"algorithm":"token_bucket","capacity":30,"refillRate":1}'],
  ["--policy", '{"algorithm":"fix_window","limit":60,"scale":"1m"}'],
].flat();
const config = `
[[durable_objects.bindings]]
name = "LIMITERS"
class_name = "RateLimiterObject"

[vars.TOLLGATE]
upstream = "https://origin.example"

[vars.TOLLGATE.policies]
login = { algorithm = "sliding_window", limit = 5, scale = "1m" }
api = { algorithm = "token_bucket", capacity = 30, refillRate = 1 }

[[vars.TOLLGATE.rules]]
method = "POST"
path = "/login"
policies = "login"

[[vars.TOLLGATE.rules]]
path = "/api/*"
policies = "api"
`;

const folder = mkdtempSync(join(tmpdir(), "tollgate-replay-"));
const at = (name) => join(folder, name);
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

async function written(name, options) {
  const stream = createWriteStream(at(name));
  await writeLog(stream, { lines: million, keys, ...options });
  await new Promise((resolve) => stream.end(resolve));
}

async function writeLogs() {
  process.stderr.write("  writing logs\n");
  await written("combined", {});
  await written("json", { json: true });
  await pipeline(createReadStream(at("combined")), createGzip({ level: 6 }), createWriteStream(at("packed")));
  writeFileSync(at("wrangler.toml"), config);
}

const thousands = (number) => Math.round(number).toLocaleString("en");

async function speed() {
  await writeLogs();
  const runs = {
    "combined format, one policy": [at("combined"), ...policy],
    "the same, gzipped": [at("packed"), ...policy],
    "three policies side by side": [at("combined"), ...policy, ...others],
    "`--suggest 99.9`": [at("combined"), ...policy, "--suggest", "99.9"],
    "key by `path`": [at("combined"), ...policy, "--key", "path"],
    "JSON lines": [at("json"), ...policy],
    "rules of a `wrangler.toml`": [at("combined"), "--config", at("wrangler.toml")],
  };
  const best = {};
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, args] of Object.entries(runs)) {
      process.stderr.write(`  ${name}\n`);
      const { milliseconds } = await measured(folder, args);
      best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, milliseconds);
    }
  }
  const rows = Object.entries(best).map(([name, milliseconds]) => [
    name,
    thousands((million / milliseconds) * 1_000),
  ]);
  const text = `${thousands(million)} lines with ${thousands(keys)} keys, the start of the process included, the best of ${rounds} alternating rounds.`;
  return `${text}\n\n${table(["", "lines a second"], rows)}`;
}

async function memory() {
  const rows = [];
  for (const lines of [million, 10 * million]) {
    process.stderr.write(`  ${thousands(lines)} lines\n`);
    const { memory, summary } = await measured(folder, policy, {
      feed: (stream) => writeLog(stream, { lines, keys }),
      // The memory that V8 keeps for garbage grows with the running time of a process, up to a bound.
      flags: ["--max-semi-space-size=2"],
    });
    if (summary.candidates[0].hits !== lines) throw new Error("lines were lost");
    rows.push([`${thousands(lines)} lines`, `${Math.round(memory / 1e6)} MB`]);
  }
  return `The most memory of the whole process, from standard input, with ${thousands(keys)} keys and \`--max-semi-space-size=2\`, which bounds what V8 keeps for garbage.\n\n${table(["", "memory"], rows)}`;
}

await runParts({ speed, memory }, [], {
  section: "replay",
  title: "Replaying logs: npx tollgate replay",
  command: "npm run bench -- replay",
});
