// The workflows run pinned actions without credentials, and what publishes runs no code of the project and has no token to lose.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { inProject } from "../../scripts/lib/paths.mjs";

const folder = inProject(".github/workflows");
const workflows = readdirSync(folder).map((file) => [file, readFileSync(`${folder}/${file}`, "utf8")]);

/** Returns the text of each job, by its name: jobs are indented by two spaces. */
function jobsOf(workflow) {
  const [, jobs] = workflow.split(/^jobs:\n/m);
  const parts = jobs.split(/^ {2}(\w+):\n/m).slice(1);
  return Object.fromEntries(parts.flatMap((part, at) => (at % 2 === 0 ? [[part, parts[at + 1]]] : [])));
}

/** Returns what a job may do: its lines below `permissions`. */
const permissionsOf = (job) =>
  job.match(/^ {4}permissions:\n((?: {6}.*\n)+)/m)?.[1].match(/[\w-]+: \w+/g) ?? [];

for (const [file, text] of workflows) {
  test(`${file}: every action is pinned by its commit, with its version beside it`, () => {
    const used = [...text.matchAll(/uses: (.*)/g)].map(([, action]) => action);
    assert.ok(used.length > 0);
    for (const action of used) assert.match(action, /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test(`${file}: no check-out leaves credentials behind`, () => {
    const steps = text.split(/^ {6}- /m).filter((step) => step.includes("actions/checkout@"));
    assert.ok(steps.length > 0);
    for (const step of steps) assert.match(step, /persist-credentials: false/);
  });

  test(`${file}: it uses no secrets, and may write nothing by default`, () => {
    assert.doesNotMatch(text, /secrets\.|_TOKEN: \$\{\{ secrets/);
    assert.match(text, /^permissions: \{\}$|^permissions:\n {2}contents: read\njobs:/m);
  });
}

const release = jobsOf(workflows.find(([file]) => file === "release.yml")[1]);

test("the job that builds may publish nothing", () => {
  assert.deepEqual(permissionsOf(release.build), ["contents: read"]);
  assert.match(release.build, /run: npm run release -- /);
  assert.match(release.build, /actions\/upload-artifact@/);
});

test("the job that publishes has the artifact alone, and its identity", () => {
  const { publish } = release;
  assert.deepEqual(permissionsOf(publish), ["id-token: write"]);
  assert.match(publish, /^ {4}needs: build\n {4}if: \$\{\{ !inputs\.dry-run \}\}$/m);
  assert.match(publish, /^ {4}environment: release$/m);
  assert.match(publish, /actions\/download-artifact@/);
  assert.doesNotMatch(publish, /checkout|npm (ci|install|run)|node |scripts\//);
  // Neither scripts of the package nor those of its dependencies run.
  assert.match(publish, /npm publish "\.\/tollgate-\$VERSION\.tgz"/);
  assert.match(publish, /cargo publish --no-verify/);
});

test("no other job has the identity, and only that of the tag may write", () => {
  for (const [name, job] of Object.entries(release)) {
    assert.equal(permissionsOf(job).includes("id-token: write"), name === "publish");
    assert.equal(permissionsOf(job).includes("contents: write"), name === "tag");
  }
  assert.doesNotMatch(release.tag, /uses:/);
});

test("SECURITY.md says where to report, and which versions get fixes", () => {
  const text = readFileSync(inProject("SECURITY.md"), "utf8");
  for (const heading of ["Report a vulnerability", "What counts", "Which versions"])
    assert.match(text, new RegExp(`^## ${heading}$`, "m"));
});
