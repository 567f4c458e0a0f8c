import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import template from "tollgate:template";
import type { Command } from "./command.ts";
import { CommandError, exit, UsageError } from "./errors.ts";

/** `tollgate init`: writes a Worker that can be run and deployed as it is. */
export const init: Command = {
  name: "init",
  summary: "Writes a gateway Worker to run and to deploy, with tests",
  usage: "[folder]",
  options: {},
  notes: `
Without a folder it writes into this one. It overwrites nothing.`,
  run: async ({ operands }) => {
    if (operands.length > 1) throw new UsageError("name one folder");
    const [folder = "."] = operands;
    const files = filesFor(nameOf(folder));
    const taken = Object.keys(files).filter((file) => existsSync(join(folder, file)));
    if (taken.length > 0)
      throw new CommandError(`${join(folder, taken[0] as string)} exists; name another folder`);
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
    const enter = folder === "." ? "" : `cd ${folder} && `;
    process.stdout.write(`Wrote ${Object.keys(files).join(", ")}.\nNext: ${enter}npm install && npm start\n`);
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
function filesFor(name: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(template).map(([file, text]) => [
      ["gitignore", "dev.vars"].includes(file) ? `.${file}` : file,
      text.replaceAll("{{name}}", name),
    ]),
  );
}
