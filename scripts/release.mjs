import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { nodeTestFlags } from "./lib/node-test.mjs";
import { optionsGiven } from "./lib/options.mjs";
import { bin, inProject } from "./lib/paths.mjs";
import { outputOf, quiet, show } from "./lib/run.mjs";
import { bold, dim, Failure, green, say } from "./lib/say.mjs";
import { newest, plain, repositories, versions } from "./release/versions.mjs";
import { afterSetUp, toTest } from "./setup.mjs";

const given = optionsGiven(
  { "dry-run": { type: "boolean" }, "skip-tests": { type: "boolean" } },
  "npm run release -- --dry-run, with --skip-tests or without",
);
const dryRun = given["dry-run"] ?? false;
const { version, date, changes } = newest();
const tag = `v${version}`;

/** The reasons for which a real release would have stopped. */
const missing = [];

function stop(what, remedy) {
  if (!dryRun) throw new Failure(what, { remedy });
  missing.push(`${what}: ${remedy}`);
  return what;
}

function clean() {
  const changed = outputOf("git", ["status", "--porcelain"]);
  if (changed !== "") throw new Failure("the work tree is not clean", { output: changed ?? "git failed" });
}

function oneVersion() {
  const found = versions();
  if (new Set(Object.values(found)).size === 1) return version;
  const lines = Object.entries(found).map(([place, version]) => `${place}: ${version}`);
  throw new Failure("the versions differ", { output: lines.join("\n") });
}

function changeLog() {
  if (date !== undefined && changes > 0) return `${changes} changes, ${date}`;
  throw new Failure(`CHANGELOG.md has no entry "## ${version} (<year>-<month>-<day>)" with changes`);
}

function notYetTagged() {
  if (outputOf("git", ["rev-parse", "--verify", "--quiet", `refs/tags/${tag}`]) !== null)
    throw new Failure(`there is a tag ${tag} already`);
}

/** Checks the repository: npm signs a package only if it is built where its manifest says that its sources are. */
function repository() {
  const origin = plain(outputOf("git", ["remote", "get-url", "origin"]));
  for (const [file, url] of Object.entries(repositories())) {
    if (url === undefined) return stop(`${file} names no repository`, "fill in its address");
    if (origin === undefined || plain(url) !== origin)
      return stop(`${file} names ${url}`, `origin is ${origin ?? "not set"}`);
  }
  return origin;
}

function tests() {
  if (!given["skip-tests"]) return show(process.execPath, [inProject("scripts/test.mjs")]);
  return stop("the tests were skipped", "leave out --skip-tests");
}

const packed = () => show(bin("node"), [...nodeTestFlags, "tests/release/*.test.mjs"]);

/** Packs the crate and the package into a folder, which a job of its own publishes: it runs nothing of this project. */
async function pack() {
  rmSync(inProject("release"), { recursive: true, force: true });
  mkdirSync(inProject("release"));
  await quiet("cargo", "cargo", ["package", "--no-verify", "--package", "tollgate"]);
  copyFileSync(
    join(targetFolder(), "package", `tollgate-${version}.crate`),
    inProject("release", `tollgate-${version}.crate`),
  );
  await quiet("npm", "npm", ["pack", "--ignore-scripts", "--pack-destination", "release"]);
  return readdirSync(inProject("release")).join(", ");
}

const targetFolder = () =>
  JSON.parse(outputOf("cargo", ["metadata", "--format-version", "1", "--no-deps"])).target_directory;

const steps = [
  ["the work tree is clean", clean],
  ["one version everywhere", oneVersion],
  ["the change log", changeLog],
  [`no tag ${tag} yet`, notYetTagged],
  ["the repository's address", repository],
  ["npm test", tests],
  ["build", build],
  ["what is packed", packed],
  ["cargo publish --dry-run", () => quiet("cargo", "cargo", ["publish", "--dry-run"])],
  ["npm publish --dry-run", () => quiet("npm", "npm", ["publish", "--dry-run"])],
  ["pack into release/", pack],
];

await afterSetUp(toTest, async (found) => {
  for (const [index, [name, run]] of steps.entries()) {
    say(bold(`\n[${index + 1}/${steps.length}] ${name.trim()}`));
    const note = await run(found);
    if (typeof note === "string") say(dim(`      ${note}`));
  }
  say(green(dryRun ? `\n${tag} could be released.` : `\n${tag} is packed for release.`));
  for (const line of missing) say(`Before that: ${line}.`);
});
