// Programs with the packaged crate compile and run.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test, { before } from "node:test";
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

/** An example in a folder of its own, and the arguments with which cargo builds it on the packaged crate. */
async function example(name) {
  await run("rustfmt", ["--check", "--edition", "2024", inProject("examples", name, "src/main.rs")]);
  const program = join(process.env.TOLLGATE_PACKED, name);
  cpSync(inProject("examples", name), program, {
    recursive: true,
    filter: (path) => !/(target|Cargo.lock)$/.test(path),
  });
  // The versions that the project was tried with, which are here already.
  cpSync(inProject("Cargo.lock"), join(program, "Cargo.lock"));
  const patch = `patch.crates-io.tollgate.path=${JSON.stringify(folder)}`;
  return { program, args: ["--quiet", "--config", patch, "--target-dir", target] };
}

before(unpacked);

test("rust-program: a program with the packaged crate", { timeout: 300_000 }, async () => {
  const { program, args } = await example("rust-program");
  const { status, stdout, stderr } = spawnSync("cargo", ["run", "--offline", ...args], {
    cwd: program,
    encoding: "utf8",
    input: "ann\nbob\nann\nann\n",
  });
  assert.equal(status, 0, stderr);
  assert.match(
    stdout,
    /^ann: allowed, 1 left\nbob: allowed, 1 left\nann: allowed, 0 left\nann: denied for 3[56]\d\d s\n$/,
  );
});

test("axum-server: five requests for each address, and three failed logins", {
  timeout: 600_000,
}, async (t) => {
  const { program, args } = await example("axum-server");
  await run("cargo", ["build", ...args], { cwd: program });
  const server = spawn(join(target, "debug/tollgate-axum-server"), {
    env: { ...process.env, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => server.kill());
  const [line] = await once(createInterface(server.stdout), "line");
  const url = line.trim();

  const pages = [];
  for (let turn = 0; turn < 6; turn += 1) pages.push(await fetch(url));
  assert.deepEqual(
    pages.map(({ status }) => status),
    [200, 200, 200, 200, 200, 429],
  );
  assert.equal(pages[0].headers.get("RateLimit-Policy"), '"sliding_window";q=5;w=60');
  assert.match(pages[5].headers.get("Retry-After"), /^(5\d|60)$/);
  assert.deepEqual((await pages[5].json())["violated-policies"], ["sliding_window"]);

  const login = (body) => fetch(`${url}/login`, { method: "POST", body });
  const guesses = await Promise.all(Array.from({ length: 20 }, () => login("guess")));
  assert.equal(guesses.filter(({ status }) => status === 401).length, 3, "guesses at once");
  assert.equal((await login("secret")).status, 429);
});
