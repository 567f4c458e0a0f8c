import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join, relative, resolve, sep } from "node:path";
import template from "tollgate:template";
import type { Command } from "./command.ts";
import { CommandError, exit, UsageError } from "./errors.ts";
import { type Origin, originOfPackage } from "./installed.ts";
import { print } from "./output.ts";

/** `tollgate init`: writes a Worker that can be run and deployed as it is. */
export const init: Command = {
  name: "init",
  summary: "Writes a gateway Worker with tests, ready to run and deploy",
  usage: "[folder]",
  options: {},
  notes: `
Without a folder, it writes into the current one. It never overwrites a file.`,
  run: async ({ operands }) => {
    if (operands.length > 1) throw new UsageError("name one folder");
    const [folder = "."] = operands;
    const origin = originOfPackage();
    const files = filesFor(nameOf(folder), dependencyOn(origin, folder));
    const taken = Object.keys(files).filter((file) => existsSync(join(folder, file)));
    if (taken.length > 0)
      throw new CommandError(`${join(folder, taken[0] as string)} exists; name another folder`);
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
    print(`Wrote ${Object.keys(files).join(", ")}.\n${nextSteps(origin, folder)}`);
    return exit.ok;
  },
};

/** Returns the name of a Worker for a folder: lower case letters, digits and hyphens. */
function nameOf(folder: string): string {
  const name = basename(resolve(folder))
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 63);
  return name === "" ? "gateway" : name;
}

/** Returns the files by their names. Those of the template have no leading dot, since npm would not pack them. */
function filesFor(name: string, dependency: string | undefined): Readonly<Record<string, string>> {
  const files = Object.fromEntries(
    Object.entries(template).map(([file, text]) => [
      ["gitignore", "dev.vars"].includes(file) ? `.${file}` : file,
      text.replaceAll("{{name}}", name),
    ]),
  );
  if (dependency === undefined) return files;
  const manifest = JSON.parse(files["package.json"] ?? "");
  manifest.dependencies.tollgate = dependency;
  return { ...files, "package.json": `${JSON.stringify(manifest, undefined, 2)}\n` };
}

/** Returns the dependency on a package that is a file or a folder; undefined for the version on npm. */
function dependencyOn(origin: Origin, folder: string): string | undefined {
  if (typeof origin === "string") return undefined;
  return `file:${relative(resolve(folder), origin.path).replaceAll(sep, "/")}`;
}

function nextSteps(origin: Origin, folder: string): string {
  const enter = folder === "." ? "" : `cd ${/^[\w./-]+$/.test(folder) ? folder : JSON.stringify(folder)} && `;
  const next = `Next: ${enter}npm install && npm start\n`;
  if (origin === "registry") return next;
  if (origin === "unknown")
    return `${next}If tollgate is not on npm: ${enter}npm install <path to the tarball> && npm start\n`;
  return `package.json installs tollgate from ${origin.path}.\n${next}`;
}
