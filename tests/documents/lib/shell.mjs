import { existsSync, readFileSync } from "node:fs";
import { inProject } from "../../../scripts/lib/paths.mjs";

const manifest = JSON.parse(readFileSync(inProject("package.json"), "utf8"));
const packages = ["tollgate", ...Object.keys(manifest.devDependencies)];
const features = readFileSync(inProject("Cargo.toml"), "utf8");

/** The commands of a block, without comments, one that goes on over several lines as one. */
export const commandsIn = (text) =>
  text
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .map((line) => line.replace(/(^|\s)#.*$/, "").trim())
    .filter((line) => line !== "");

const isOption = (word) => word.startsWith("-");
const all = (words, isKnown) => words.filter((word) => !isOption(word)).find((word) => !isKnown(word));

/** Returns whether npm can install it: a known package, with or without a version, or the packed tarball. */
const isInstallable = (word) =>
  word.endsWith(`/tollgate-${manifest.version}.tgz`) || packages.includes(word.replace(/(?<=.)@[^/]*$/, ""));

/** By its first word, what a command names that is not there. */
const unknown = {
  npm: ([verb, ...words]) => {
    if (["start", "test"].includes(verb)) return verb in manifest.scripts ? undefined : verb;
    if (verb === "run") return words[0] in manifest.scripts ? undefined : words[0];
    if (verb === "install") return all(words, isInstallable);
    return verb;
  },
  npx: ([name]) => (packages.includes(name) ? undefined : name),
  node: (words) => all(words, (path) => existsSync(inProject(path))),
  cd: (words) => all(words, (path) => path === "tollgate" || existsSync(inProject(path))),
  cargo: ([verb, ...words]) => {
    if (["test", "bench", "build", "doc"].includes(verb)) return undefined;
    if (verb !== "add") return verb;
    return all(words, (word) => word === "tollgate" || new RegExp(`^${word} =`, "m").test(features));
  },
  git: ([verb]) => (verb === "clone" ? undefined : verb),
};

/** Fails when a command names what does not exist. */
export function checkCommand(command) {
  const [first, ...words] = command.split(/\s+/);
  if (!(first in unknown)) throw new Error(`${command}: nothing here knows how to check ${first}`);
  const name = unknown[first](words);
  if (name !== undefined) throw new Error(`${command}: there is no ${name}`);
}
