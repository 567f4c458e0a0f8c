import { existsSync } from "node:fs";
import type { Command } from "./command.ts";
import { type ConfigError, readConfig } from "./config.ts";
import { UnreadableConfig } from "./config-file.ts";
import { exit, UsageError } from "./errors.ts";
import type { Given } from "./options.ts";

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
Exit codes: 0 for no errors, 1 for errors, 2 for an invalid command line.`,
  run: async (given) => {
    const path = fileOf(given);
    const errors = errorsIn(path, given.one("env"));
    if (given.has("json")) process.stdout.write(`${JSON.stringify({ file: path, errors }, undefined, 2)}\n`);
    else process.stdout.write(`${listed(path, errors)}\n`);
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

function errorsIn(path: string, environment: string | undefined): readonly ConfigError[] {
  try {
    const { errors } = readConfig(path, environment);
    return errors.toSorted((one, other) => one.line - other.line);
  } catch (error) {
    if (!(error instanceof UnreadableConfig)) throw error;
    return [{ line: error.line, field: "", problem: error.problem }];
  }
}

function listed(path: string, errors: readonly ConfigError[]): string {
  if (errors.length === 0) return `${path} has no errors.`;
  return errors
    .map(({ line, field, problem }) => `${path}:${line}: ${field === "" ? "" : `${field}: `}${problem}`)
    .join("\n");
}
