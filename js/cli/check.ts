import { existsSync } from "node:fs";
import { printable } from "../printable.ts";
import type { Command } from "./command.ts";
import { type Config, type ConfigError, readConfig } from "./config.ts";
import { UnreadableConfig } from "./config-file.ts";
import { exit, UsageError } from "./errors.ts";
import type { Given } from "./options.ts";
import { print, printJson } from "./output.ts";

const usual = ["wrangler.toml", "wrangler.jsonc", "wrangler.json"];

/** `tollgate check`: finds all errors in a configuration before a deploy does. */
export const check: Command = {
  name: "check",
  summary: "Lists all errors in the configuration of a Worker, with their lines",
  usage: "[file] [--env <name>] [--json]",
  options: {
    env: { value: "<name>", help: "an environment in the file; by default the top level" },
    json: { help: "print the errors as JSON" },
  },
  notes: `
Without a file, it reads the first of ${usual.join(", ")} that exists.
A warning is valid, and hardly meant: scale = 60 is 60 milliseconds.
Exit codes: 0 for no errors, 1 for errors, 2 for an invalid command line.`,
  run: async (given) => {
    const path = fileOf(given);
    const { errors, warnings, notes } = foundIn(path, given.one("env"));
    if (given.has("json")) printJson({ file: path, errors, warnings, notes }, 2);
    else print(`${listed(path, { errors, warnings, notes })}\n`);
    return errors.length === 0 ? exit.ok : exit.failed;
  },
};

function fileOf({ operands }: Given): string {
  if (operands.length > 1) throw new UsageError("name one file");
  const [path = usual.find((name) => existsSync(name))] = operands;
  if (path === undefined) throw new UsageError(`there is no ${usual.join(", ")} here; name a file`);
  if (!existsSync(path)) throw new UsageError(`${path} does not exist`);
  return path;
}

type Findings = Pick<Config, "errors" | "warnings" | "notes">;

function foundIn(path: string, environment: string | undefined): Findings {
  const byLine = (list: readonly ConfigError[]) => list.toSorted((one, other) => one.line - other.line);
  try {
    const { errors, warnings, notes } = readConfig(path, environment);
    return { errors: byLine(errors), warnings: byLine(warnings), notes };
  } catch (error) {
    if (!(error instanceof UnreadableConfig)) throw error;
    return { errors: [{ line: error.line, field: "", problem: error.problem }], warnings: [], notes: [] };
  }
}

function listed(path: string, { errors, warnings, notes }: Findings): string {
  const lines = (list: readonly ConfigError[], kind = "") =>
    list.map(({ line, field, problem }) =>
      printable(`${path}:${line}: ${kind}${field === "" ? "" : `${field}: `}${problem}`),
    );
  const summary =
    errors.length === 0 ? [...lines(notes, "note: ").slice(0, 1), `${path} has no errors.`] : [];
  return [...lines(errors), ...lines(warnings, "warning: "), ...summary].join("\n");
}
