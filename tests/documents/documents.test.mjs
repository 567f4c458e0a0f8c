import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { transform } from "esbuild";
import { createTestHarness, unstable_readConfig as readConfig } from "wrangler";
import { mistakesIn } from "../../scripts/lib/config.mjs";
import { bin, inProject } from "../../scripts/lib/paths.mjs";
import { freshProject, run } from "../package/lib/project.mjs";
import { blocksOf } from "./lib/blocks.mjs";
import { checkedBy, moduleOf, workerOf } from "./lib/program.mjs";
import { checkCommand, commandsIn } from "./lib/shell.mjs";

const isScript = ({ language, from }) => !from && ["js", "mjs", "ts"].includes(language);
const isWorker = (block) => isScript(block) && block.run === "worker";
const nameOf = ({ document, line }) => `${document.replaceAll("/", "-")}-${line}`;

const guides = existsSync(inProject("docs"))
  ? readdirSync(inProject("docs"))
      .filter((name) => name.endsWith(".md"))
      .map((name) => `docs/${name}`)
  : [];
const documents = ["README.md", "CONTRIBUTING.md", "DESIGN.md", ...guides];
const blocks = documents.flatMap(blocksOf);
const wrong = blocksOf("tests/documents/fixture/wrong.md");
const workers = [...blocks, ...wrong].filter(isWorker);

const token = "a-token-for-documents";

let project;
let harness;
let limits;

before(async () => {
  project = await freshProject("documents", "tests/documents/fixture");
  for (const folder of ["types/node", "types/worker", "run", "toml"])
    mkdirSync(join(project, folder), { recursive: true });
  cpSync(inProject("tests/documents/lib/says.js"), join(project, "run/says.js"));
  cpSync(inProject("tests/documents/lib/setting.js"), join(project, "run/setting.js"));
  for (const block of workers)
    writeFileSync(join(project, "run", `${nameOf(block)}.ts`), checkedBy(workerOf(block), block));
  harness = createTestHarness({ root: project, workers: [await theirs(), ...workers.map(own)] });
  limits = (await harness.listen()).url;
});
after(() => harness?.close());

const worker = (name, main, object, rest) => ({
  config: {
    name,
    main,
    compatibility_date: "2026-09-01",
    durable_objects: { bindings: [{ name: "LIMITERS", class_name: "RateLimiterObject", ...object }] },
    migrations: [{ tag: "v1", new_sqlite_classes: ["RateLimiterObject"] }],
    ...rest,
  },
});

/** The Worker at limits.example.com, with the policies of all documents; where two are of one name, the README's. */
async function theirs() {
  const policies = {};
  for (const block of blocks.filter(({ language, from }) => language === "toml" && !from).reverse())
    if ((await mistakesOf(block)).length === 0)
      Object.assign(policies, configOf(block).vars.TOLLGATE?.policies);
  return worker("limits", "limits.js", {}, { vars: { TOLLGATE: { policies }, TOLLGATE_TOKEN: token } });
}

/** The Worker of a block, with the objects of the other one if it exports none. */
function own(block) {
  const object = /export .*\bRateLimiterObject\b/.test(block.text) ? {} : { script_name: "limits" };
  const name = nameOf(block).toLowerCase().replaceAll(".", "-");
  const services = [{ binding: "TOLLGATE", service: "limits", entrypoint: "Tollgate" }];
  return worker(name, `run/${nameOf(block)}.ts`, object, { services });
}

function configOf(block) {
  const file = join(project, "toml", `${nameOf(block)}.toml`);
  writeFileSync(file, block.text);
  return readConfig({ config: file });
}

/** How a block of each language is shown to be true. */
const checks = {
  js: runScript,
  mjs: runScript,
  ts: runScript,
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

for (const block of blocks) test(`${block.place} ${block.language}`, { timeout: 30_000 }, () => check(block));

/** What is found, in the order of the blocks that are wrong. */
const findings = [
  /says \[1,3\], but is \[1,2\]/,
  /says {"a":1}, but is {"a":1,"b":2}/,
  /a comment with a value starts with "\/\/ => "/,
  /says it throws TollgateError: limit…, but it throws nothing/,
  /it does not run/,
  /run: takes worker, types or continued/,
  /says false, but is true/,
  /this is not in examples\/node-http\/server\.mjs/,
  /nothing here runs a block in ""/,
  /upstraem: no such field/,
  /tollgate 7 is not/,
  /JSON/,
  /there is no nothing/,
  /nothing here knows how to check brew/,
  /401/,
  /src\/lib\.rs must include/,
];

test("a block that is wrong is found", async () => {
  assert.equal(wrong.length, findings.length);
  for (const [at, block] of wrong.entries()) await assert.rejects(check(block), findings[at], block.place);
});

async function runScript(block) {
  if (block.run === "worker") {
    const { name } = own(block).config;
    const response = await harness.getWorker(name).fetch("http://localhost/");
    assert.ok(response.status < 500, await response.text());
  } else if (block.run === undefined) {
    const file = join(project, "run", `${nameOf(block)}.mjs`);
    const { code } = await transform(checkedBy(moduleOf(block), block), {
      loader: "ts",
      sourcefile: block.place,
    });
    writeFileSync(file, code);
    const env = { ...process.env, LIMITS_URL: limits.href, TOLLGATE_TOKEN: token };
    await run(process.execPath, ["--import", "./run/setting.js", file], { cwd: project, env });
  } else assert.equal(block.run, "types", "run: takes worker, types or continued");
}

async function runShell({ text }) {
  for (const command of commandsIn(text)) {
    if (command.startsWith("curl ")) await runCurl(command);
    else checkCommand(command);
  }
}

/** Asks the Worker that runs here; an answer that is no success is a failure. */
async function runCurl(command) {
  const here = command.replaceAll("https://limits.example.com/", limits.href);
  const answer = await run("sh", ["-c", `${here} --silent --show-error --fail-with-body`], {
    env: { ...process.env, TOKEN: token },
  });
  JSON.parse(answer);
}

async function checkTable(block) {
  if (isManifest(block)) checkDependency(block);
  else assert.deepEqual(await mistakesOf(block), []);
}

const isManifest = ({ text }) => /^\[dependencies\]/m.test(text);

/** A part of a configuration must be right in itself; only a whole one has bindings. */
async function mistakesOf(block) {
  if (isManifest(block)) return [];
  const config = configOf(block);
  const isWhole = config.durable_objects.bindings.length > 0;
  const ofBindings = /^durable_objects|service binding/;
  return (await mistakesIn(config)).filter((mistake) => isWhole || !ofBindings.test(mistake));
}

/** What Cargo.toml is told to have is what this crate is. */
function checkDependency({ text }) {
  const manifest = readFileSync(inProject("Cargo.toml"), "utf8");
  const [, version] = manifest.match(/^version = "(.*)"$/m);
  const [, wanted] = text.match(/^tollgate = (?:\{ version = )?"(.*?)"/m) ?? [];
  assert.ok(wanted && version.startsWith(wanted), `tollgate ${wanted} is not ${version}`);
  for (const [, names] of text.matchAll(/features = \[(.*?)\]/g))
    for (const [, name] of names.matchAll(/"(.*?)"/g))
      assert.match(manifest, new RegExp(`^${name} = \\[`, "m"));
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

/** A part of an example stands there word for word; the example is run by its own test. */
function isPartOf({ text }, file) {
  assert.match(file, /^examples\//);
  assert.ok(readFileSync(inProject(file), "utf8").includes(text), `this is not in ${file}`);
}

test("TypeScript blocks, and those that are only checked, under strict types", async () => {
  const typed = blocks.filter(
    (block) => isScript(block) && (block.language === "ts" || block.run === "types"),
  );
  for (const block of typed) {
    const [folder, code] = isWorker(block) ? ["worker", workerOf(block)] : ["node", moduleOf(block)];
    const file = `${nameOf(block)}.${block.language === "ts" ? "ts" : "js"}`;
    writeFileSync(join(project, "types", folder, file), `${code}\nexport {};\n`);
  }
  await run(bin("tsc"), ["-p", "tsconfig.node.json"], { cwd: project });
  await run(bin("tsc"), ["-p", "tsconfig.worker.json"], { cwd: project });
});
