// Every code block of the documents runs as written against the packed package, with the values it states.

import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { transform } from "esbuild";
import { RedisLimiter } from "tollgate/redis";
import { createTestHarness } from "wrangler";
import { bin, inProject } from "../../scripts/lib/paths.mjs";
import { after, before } from "../lib/hooks.mjs";
import { patiently } from "../lib/patience.mjs";
import { freshProject, run } from "../package/lib/project.mjs";
import { connect, startServer } from "../redis/lib/server.mjs";
import { blocksOf, documents } from "./lib/blocks.mjs";
import { writeLogs } from "./lib/logs.mjs";
import { checkedBy, moduleOf, workerOf } from "./lib/program.mjs";
import { checkCommand, commandsIn } from "./lib/shell.mjs";
import { checkTable, policiesOf } from "./lib/tables.mjs";
import { limitsWorker, ownWorker, token, workerName } from "./lib/workers.mjs";

const isScript = ({ language, from }) => !from && ["js", "mjs", "ts"].includes(language);
const isWorker = (block) => isScript(block) && block.run === "worker";
const isTable = ({ language, from }) => !from && language === "toml";

const blocks = documents.flatMap(blocksOf);
const wrong = blocksOf("tests/documents/fixture/wrong.md");
const workers = [...blocks, ...wrong].filter(isWorker);

const curl = inProject("tests/documents/lib/curl.mjs");

let project;
let logs;
let harness;
let limits;
let redis;

before(async () => {
  project = await freshProject("documents", "tests/documents/fixture");
  for (const folder of ["types/node", "types/worker", "run"])
    mkdirSync(join(project, folder), { recursive: true });
  for (const helper of ["render.js", "says.js", "setting.js"])
    cpSync(inProject("tests/documents/lib", helper), join(project, "run", helper));
  for (const block of workers)
    writeFileSync(join(project, "run", `${block.name}.ts`), checkedBy(workerOf(block), block));
  logs = join(project, "logs");
  writeLogs(logs);
  const theirs = limitsWorker(await policiesOf(blocks.filter(isTable)));
  harness = createTestHarness({ root: project, workers: [theirs, ...workers.map(ownWorker)] });
  limits = (await harness.listen()).url;
  redis = await startServer();
});
after(() => harness?.close());
after(() => redis?.stop());

/** How a block of each language is shown to be true. */
const checks = {
  js: runScript,
  mjs: runScript,
  ts: runScript,
  tsx: renderComponents,
  sh: runShell,
  toml: checkTable,
  json: ({ text }) => JSON.parse(text),
  rust: isDoctest,
  // Not code: a map, a sketch, what something prints.
  text: () => {},
};

async function check(block) {
  const { language, from } = block;
  if (from) return isPartOf(block, from);
  const [name] = language.split(",");
  assert.ok(name in checks, `nothing here runs a block in "${language}"; text is for what is not code`);
  return checks[name](block);
}

for (const block of blocks)
  test(`${block.place} ${block.language}`, { timeout: 120_000 }, () => check(block));

/** What is found, in the order of the blocks that are wrong. */
const findings = [
  /says \[1,3\], but is \[1,2\]/,
  /says {"a":1}, but is {"a":1,"b":2}/,
  /a comment with a value starts with "\/\/ => "/,
  /says it throws TollgateError: limit…, but it throws nothing/,
  /the statement is never reached/,
  /it does not run/,
  /run: takes worker, types or continued/,
  /says false, but is true/,
  /this is not in examples\/node-http\/server\.mjs/,
  /nothing here runs a block in ""/,
  /upstraem: unknown field/,
  /Unexpected fields .*"durable_object"/,
  /tollgate 7 is not/,
  /JSON/,
  /there is no nothing/,
  /nothing here knows how to check brew/,
  /401/,
  /src\/lib\.rs must include/,
];

test("an incorrect block is found", async () => {
  assert.equal(wrong.length, findings.length);
  for (const [at, block] of wrong.entries()) await assert.rejects(check(block), findings[at], block.place);
});

async function runScript(block) {
  if (block.run === "worker") {
    const response = await harness.getWorker(workerName(block)).fetch("http://localhost/");
    assert.ok(response.status < 500, await response.text());
  } else if (block.run === undefined) {
    const file = join(project, "run", `${block.name}.mjs`);
    const { code } = await transform(checkedBy(moduleOf(block), block), {
      loader: "ts",
      sourcefile: block.place,
      // As Nest has decorators.
      tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
    });
    writeFileSync(file, code);
    const env = { ...process.env, LIMITS_URL: limits.href, TOLLGATE_TOKEN: token };
    await run(process.execPath, ["--import", "./run/setting.js", file], { cwd: project, env });
  } else assert.equal(block.run, "types", "run: takes worker, types or continued");
}

/** Renders the components that a block exports on a server, without properties. */
async function renderComponents(block) {
  const { code } = await transform(moduleOf(block), {
    loader: "tsx",
    jsx: "automatic",
    sourcefile: block.place,
  });
  writeFileSync(join(project, "run", `${block.name}.mjs`), code);
  await run(process.execPath, ["run/render.js", `./${block.name}.mjs`], { cwd: project });
}

async function runShell({ text }) {
  for (const command of commandsIn(text)) {
    if (command.startsWith("curl ")) await runCurl(command);
    else if (command.startsWith("npx tollgate ")) await runTollgate(command);
    else checkCommand(command);
  }
}

/** Hits a key in Redis, so that the commands find one. */
async function hitKey() {
  const client = connect(redis.port);
  const policies = [
    { algorithm: "fix_window", limit: 5, scale: "1d", name: "api" },
    { algorithm: "ban", after: 3, scale: "10m", for: "1h" },
  ];
  await new RedisLimiter(policies, { client, timeout: "20s" }).hit("user:42");
  client.disconnect();
}

/** Runs the command that the package brings, beside logs and a configuration for it to read. */
async function runTollgate(command) {
  await hitKey();
  const here = command
    .replaceAll("https://limits.example.com/", limits.href)
    .replaceAll("redis://127.0.0.1:6379", `redis://127.0.0.1:${redis.port}`);
  await run("sh", ["-c", `npx() { shift; "$NODE" ../node_modules/.bin/tollgate "$@"; }\n${here}`], {
    cwd: logs,
    env: patiently({ ...process.env, NODE: process.execPath, TOLLGATE_TOKEN: token }),
  });
}

/** Asks the Worker that runs here; an answer that is no success is a failure. */
async function runCurl(command) {
  await hitKey();
  const here = command
    .replaceAll("https://limits.example.com/", limits.href)
    .replaceAll("redis://127.0.0.1:6379", `redis://127.0.0.1:${redis.port}`);
  const answer = await run("sh", ["-c", `curl() { "$NODE" "$CURL" "$@"; }\n${here}`], {
    env: { ...process.env, NODE: process.execPath, CURL: curl, TOKEN: token },
  });
  JSON.parse(answer);
}

/** `cargo test` runs it, if the crate includes the document and nothing tells it not to. */
function isDoctest({ document, language }) {
  assert.equal(language, "rust", "a Rust block is run, so it takes no attributes");
  const crate = readFileSync(inProject("src/lib.rs"), "utf8");
  assert.ok(
    crate.includes(`include_str!("../${document}")`),
    `src/lib.rs must include ${document} for its doctests`,
  );
}

/** A part of an example or a recipe stands there word for word; that is run by its own test. */
function isPartOf({ text }, file) {
  assert.match(file, /^(examples|tests\/frameworks\/recipes)\//);
  assert.ok(readFileSync(inProject(file), "utf8").includes(text), `this is not in ${file}`);
}

test("TypeScript blocks, and those that are only checked, under strict types", async () => {
  const typed = blocks.filter(
    (block) =>
      (isScript(block) && (block.language === "ts" || block.run === "types")) ||
      (block.language === "tsx" && !block.from),
  );
  for (const block of typed) {
    const [folder, code] = isWorker(block) ? ["worker", workerOf(block)] : ["node", moduleOf(block)];
    const file = `${block.name}.${block.language.startsWith("ts") ? block.language : "js"}`;
    writeFileSync(join(project, "types", folder, file), `${code}\nexport {};\n`);
  }
  await run(bin("tsc"), ["-p", "tsconfig.node.json"], { cwd: project });
  await run(bin("tsc"), ["-p", "tsconfig.worker.json"], { cwd: project });
});
