import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { finished } from "../lib/finished.mjs";
import { inProject, tools } from "../lib/paths.mjs";
import { quiet } from "../lib/run.mjs";

const locked = readFileSync(inProject("Cargo.lock"), "utf8");

/** Returns the version of a crate in Cargo.lock. */
const versionOf = (crate) => locked.match(new RegExp(`name = "${crate}"\\nversion = "(.+)"`))[1];

async function install(name, version, folder, ...more) {
  // The debug profile compiles in a third of the time and is fast enough for files of this size.
  const args = ["install", name, "--version", `=${version}`, "--debug", "--root", folder];
  await quiet(`compiling ${name}`, "cargo", [...args, ...more], {
    env: { ...process.env, CARGO_TARGET_DIR: join(folder, "target"), CARGO_PROFILE_DEV_DEBUG: "0" },
    remedy: "see cargo's words above; a registry out of reach is the usual cause. Then run this again.",
  });
}

/** Returns a step that compiles a tool with cargo, by default in the version of a crate in Cargo.lock. */
export function cargoTool({
  id,
  name,
  install: installed = name,
  crate = name,
  version = versionOf(crate),
  what,
}) {
  const home = join(tools, `${name}-${version}`);
  return {
    id,
    name: `${name} ${version}`,
    what,
    check: () => (existsSync(home) ? join(home, "bin") : null),
    make: () =>
      finished(home, async (folder) => {
        // An outdated index may lack a locked version.
        await install(installed, version, folder, "--locked").catch(() =>
          install(installed, version, folder),
        );
        rmSync(join(folder, "target"), { recursive: true, force: true });
      }),
  };
}
