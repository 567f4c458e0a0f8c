import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { tools } from "../lib/paths.mjs";
import { outputOf, quiet } from "../lib/run.mjs";

/**
 * Returns whether Debian's packages can be used. They are unpacked into a folder of their own, with the libraries they
 * need, and not installed: this needs no root and does not change the machine.
 */
export const isDebian = () =>
  existsSync("/etc/debian_version") && outputOf("apt-get", ["--version"]) !== null;

const apt = join(tools, "apt");

/** Options of apt for lists and downloads of our own, separate from the machine's. */
const privately = [
  ["Dir::State", join(apt, "state")],
  ["Dir::State::status", "/var/lib/dpkg/status"],
  ["Dir::Cache", join(apt, "cache")],
  ["Debug::NoLocking", "1"],
  // As root, apt would drop its rights and then could not write to a home folder.
  ...(process.getuid?.() === 0 ? [["APT::Sandbox::User", "root"]] : []),
].flatMap(([name, value]) => ["-o", `${name}=${value}`]);

const remedy = "check that Debian's package mirror can be reached (apt-get update), then run this again.";

let updated;

/** Updates the lists once for all callers: two updates at a time would overwrite each other. */
export function updateLists() {
  mkdirSync(join(apt, "state", "lists", "partial"), { recursive: true });
  updated ??= quiet("apt-get update", "apt-get", [...privately, "update"], { remedy });
  return updated;
}

/** Returns the version that apt would install; null if there is none. */
export function candidate(name) {
  const policy = outputOf("apt-cache", [...privately, "policy", name], {
    env: { ...process.env, LC_ALL: "C" },
  });
  const version = policy?.match(/Candidate: (?:\d+:)?(\S+)/)?.[1] ?? "(none)";
  return version === "(none)" ? null : version;
}

/** Downloads packages and their missing dependencies, and unpacks them into `folder`. */
export async function unpack(folder, names) {
  const archives = join(folder, "archives");
  mkdirSync(join(archives, "partial"), { recursive: true });
  const download = ["install", "-y", "--download-only", "--no-install-recommends", ...names];
  await quiet(
    "downloading Debian packages",
    "apt-get",
    [...privately, "-o", `Dir::Cache::archives=${archives}`, ...download],
    { remedy },
  );
  for (const file of readdirSync(archives).filter((name) => name.endsWith(".deb"))) {
    await quiet(`unpacking ${file}`, "dpkg-deb", ["-x", join(archives, file), folder]);
  }
  rmSync(archives, { recursive: true });
}

/**
 * Writes `bin/<name>` in `folder`: a script that runs the unpacked program, or one of the machine by its name, with the
 * unpacked libraries. Its paths are relative to the script, since the folder is renamed at the end.
 */
export function wrap(folder, name, program, settings = "") {
  const libraries = libraryFolders(folder).map((each) => `$here/${relative(folder, each)}`);
  const lines = [
    "#!/bin/sh",
    'here=$(cd "$(dirname "$0")/.." && pwd)',
    `export LD_LIBRARY_PATH="${libraries.join(":")}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"`,
    ...(settings ? [`export ${settings}`] : []),
    `exec ${program.includes("/") ? `"$here/${program}"` : program} "$@"`,
  ];
  const file = join(folder, "bin", name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${lines.join("\n")}\n`, { mode: 0o755 });
  return file;
}

/** Returns the folders with libraries. */
function libraryFolders(folder) {
  const bases = ["usr/lib", "lib"].map((name) => join(folder, name)).filter(existsSync);
  const systems = bases.flatMap((base) => foldersIn(base).filter((name) => name.endsWith("-linux-gnu")));
  return systems.flatMap((system) => [system, ...foldersIn(system).filter(holdsLibraries)]);
}

function foldersIn(folder) {
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name));
}

const holdsLibraries = (folder) => readdirSync(folder).some((name) => name.includes(".so"));
