import { readFileSync } from "node:fs";
import { inProject } from "../lib/paths.mjs";

const text = (file) => readFileSync(inProject(file), "utf8");
const json = (file) => JSON.parse(text(file));
const first = (file, pattern) => text(file).match(pattern)?.[1];

/** Returns the version in every file that has it. */
export const versions = () => ({
  "package.json": json("package.json").version,
  "package-lock.json": json("package-lock.json").version,
  "package-lock.json, the package": json("package-lock.json").packages[""].version,
  "Cargo.toml": first("Cargo.toml", /^version = "(.*)"$/m),
  "Cargo.lock": first("Cargo.lock", /^name = "tollgate"\nversion = "(.*)"$/m),
  "CHANGELOG.md": newest().version,
});

/** Returns the version, date and number of changes of the newest released entry of the change log. */
export function newest(log = text("CHANGELOG.md")) {
  const [, version, note, body] =
    log.match(/^## (?!Unreleased)(\S+)(?: \((.*)\))?\n([\s\S]*?)(?=^## |$(?![\s\S]))/m) ?? [];
  const date = note?.match(/^\d{4}-\d{2}-\d{2}$/)?.[0];
  return { version, date, changes: body?.match(/^- /gm)?.length ?? 0 };
}

/** Returns the address of the sources in each manifest; npm does not sign a package without one. */
export const repositories = () => ({
  "package.json": json("package.json").repository?.url,
  "Cargo.toml": first("Cargo.toml", /^repository = "(.*)"$/m),
});

/** Returns an address in its plain form, for comparison. */
export const plain = (url) => url?.replace(/^git\+|\.git$/g, "").replace(/^git@([^:]+):/, "https://$1/");
