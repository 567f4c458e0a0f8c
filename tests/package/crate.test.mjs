// A program with the packaged crate compiles and runs.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { inProject } from "../../scripts/lib/paths.mjs";
import { run } from "./lib/project.mjs";

const folder = join(process.env.TOLLGATE_PACKED, "crate");
const target = inProject("target/packaged");

/** The crate as cargo would publish it, unpacked. Its files get a new time, or cargo would take them for the last ones. */
async function unpacked() {
  rmSync(join(target, "package"), { recursive: true, force: true });
  const args = ["package", "--allow-dirty", "--no-verify", "--offline", "--quiet", "--target-dir", target];
  await run("cargo", args, { cwd: inProject() });
  const [name] = readdirSync(join(target, "package")).filter((file) => file.endsWith(".crate"));
  mkdirSync(folder);
  await run("tar", ["-xzmf", join(target, "package", name), "-C", folder, "--strip-components=1"]);
}

test("rust-program: a program with the packaged crate", { timeout: 300_000 }, async () => {
  await run("rustfmt", ["--check", inProject("examples/rust-program/src/main.rs")]);
  await unpacked();
  const program = join(process.env.TOLLGATE_PACKED, "rust-program");
  cpSync(inProject("examples/rust-program"), program, { recursive: true });
  // The versions that the project was tried with, which are here already.
  cpSync(inProject("Cargo.lock"), join(program, "Cargo.lock"));
  const patch = `patch.crates-io.tollgate.path=${JSON.stringify(folder)}`;
  const { status, stdout, stderr } = spawnSync(
    "cargo",
    ["run", "--offline", "--quiet", "--config", patch, "--target-dir", target],
    { cwd: program, encoding: "utf8", input: "ann\nbob\nann\nann\n" },
  );
  assert.equal(status, 0, stderr);
  assert.match(
    stdout,
    /^ann: allowed, 1 left\nbob: allowed, 1 left\nann: allowed, 0 left\nann: denied for 3[56]\d\d s\n$/,
  );
});
