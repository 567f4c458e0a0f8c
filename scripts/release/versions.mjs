import { readFileSync } from "node:fs";
import { inProject } from "../lib/paths.mjs";

const text = (file) => readFileSync(inProject(file), "utf8");
const json = (file) => JSON.parse(text(file));
const first = (file, pattern) => text(file).match(pattern)?.[1];

/** Everywhere that the version is written, and what is written there. */
export const versions = () => ({
  "package.json": json("package.json").version,
  "package-lock.json": json("package-lock.json").version,
  "package-lock.json, the package": json("package-lock.json").packages[""].version,
  "Cargo.toml": first("Cargo.toml", /^version = "(.*)"$/m),
  "Cargo.lock": first("Cargo.lock", /^name = "tollgate"\nversion = "(.*)"$/m),
  "CHANGELOG.md": newest().version,
});

/** The newest entry of the change log that has a version: its version, its date if it has one, and what it says. */
export function newest(log = text("CHANGELOG.md")) {
  const [, version, note, body] =
    log.match(/^## (?!Unreleased)(\S+)(?: \((.*)\))?\n([\s\S]*?)(?=^## |$(?![\s\S]))/m) ?? [];
  const date = note?.match(/^\d{4}-\d{2}-\d{2}$/)?.[0];
  return { version, date, changes: body?.match(/^- /gm)?.length ?? 0 };
}

/** Where the sources are, by each manifest; npm signs nothing for a package that does not say. */
export const repositories = () => ({
  "package.json": json("package.json").repository?.url,
  "Cargo.toml": first("Cargo.toml", /^repository = "(.*)"$/m),
});

/** An address without the ways of writing it that make no difference. */
export const plain = (url) => url?.replace(/^git\+|\.git$/g, "").replace(/^git@([^:]+):/, "https://$1/");
