import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { unstable_readConfig as readConfig } from "wrangler";
import { inProject } from "../../../scripts/lib/paths.mjs";

const execute = promisify(execFile);
const folder = process.env.TOLLGATE_PACKED;
if (!folder) throw new Error("these tests need the tarball; run them by: npm test -- --only packed");

/** The package as it would be published. */
export const tarball = join(folder, "tollgate.tgz");

/** What a command says. When it fails, the error has its output. */
export async function run(command, args, options = {}) {
  const { stdout } = await execute(command, args, options);
  return stdout;
}

/** A project with nothing but the tarball and a copy of these files. Tools come from this repository, above it. */
export async function freshProject(name, ...sources) {
  const project = join(folder, name);
  mkdirSync(project);
  for (const source of sources) cpSync(inProject(source), project, { recursive: true });
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", tarball], {
    cwd: project,
  });
  return project;
}

/** A fixture, with the report that most of them make. */
export const freshFixture = (name) =>
  freshProject(name, `tests/package/fixtures/${name}`, "tests/package/fixtures/shared");

/** Changes a copied file, such as a time that a busy machine would not keep. */
export function edit(file, ...changes) {
  let text = readFileSync(file, "utf8");
  for (const [from, to] of changes) {
    assert.ok(text.includes(from), `${file} has no ${from}`);
    text = text.replaceAll(from, to);
  }
  writeFileSync(file, text);
}

/** A Worker by its configuration, which waits a minute for its objects: a busy machine is not what is tested. */
export function patientWorker(configPath) {
  const { TOLLGATE } = readConfig({ config: configPath }).vars;
  return { configPath, vars: { TOLLGATE: { ...TOLLGATE, timeout: "1m" } } };
}

/** The examples beside a package that was installed from the tarball: answers where each is. */
export async function freshExamples(name) {
  const project = await freshProject(name, "tests/package/fixtures/empty");
  return (example) => {
    const folder = join(project, example);
    cpSync(inProject("examples", example), folder, { recursive: true });
    return folder;
  };
}
