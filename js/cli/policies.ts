import { existsSync } from "node:fs";
import type { Policies } from "../index.ts";
import type { Config } from "./config.ts";
import { CommandError, UsageError } from "./errors.ts";
import { textOf } from "./files.ts";

/** Policies that are tried together, under a name if they have one. */
export interface NamedPolicies {
  readonly name?: string;
  /** Where they are written, for errors: `--policy`, `policies.json: api`. */
  readonly from: string;
  readonly policies: Policies;
}

/**
 * Reads the value of `--policy`: `100/1m`, a policy or a list of them in JSON, a file of JSON, or the name of a policy in the
 * configuration. A file may also have policies by their names, which are tried side by side.
 */
export function readPolicies(
  text: string,
  config: Config | undefined,
  option = "--policy",
): readonly NamedPolicies[] {
  if (/^\s*[[{]/.test(text)) return named(parsed(text, option), option);
  const [, limit, scale] = /^(\d+)\/(\w+)$/.exec(text) ?? [];
  if (limit !== undefined && scale !== undefined) return [shorthand(Number(limit), scale, option)];
  if (config?.policies.includes(text) && config.gateway !== undefined)
    return [{ name: text, from: option, policies: config.gateway.policy(text) }];
  if (existsSync(text)) return named(parsed(textOf(text), text), text);
  const known =
    config === undefined ? "" : `, and ${config.file.path} has the policies ${config.policies.join(", ")}`;
  throw new UsageError(
    `${option}: ${JSON.stringify(text)} is neither JSON, a limit such as 100/1m, nor a file${known}`,
  );
}

/** Returns the policy that `100/1m` stands for: `m` alone is one minute. */
function shorthand(limit: number, scale: string, from: string): NamedPolicies {
  const whole = /^\d/.test(scale) || /^(day|week|month)$/.test(scale) ? scale : `1${scale}`;
  const algorithm = whole === scale && !/^\d/.test(scale) ? "fix_window" : "sliding_window";
  return { from, policies: { algorithm, limit, scale: whole } as unknown as Policies };
}

function parsed(text: string, from: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw wrongPolicy(from, `it is not JSON: ${(error as Error).message}`);
  }
}

/** Returns the error for an invalid policy: of the command line, or of a file. */
export function wrongPolicy(from: string, error: unknown): Error {
  const problem = `${from}: ${error instanceof Error ? error.message : error}`;
  return from.startsWith("--") ? new UsageError(problem) : new CommandError(problem);
}

function named(value: unknown, from: string): readonly NamedPolicies[] {
  const isTable =
    typeof value === "object" && value !== null && !Array.isArray(value) && !("algorithm" in value);
  if (!isTable) return [{ from, policies: value as Policies }];
  const fields = Object.entries(value);
  // An object with other values is taken for a misspelt policy: the core returns the error.
  const areTables =
    fields.length > 0 && fields.every(([, each]) => typeof each === "object" && each !== null);
  if (!areTables) return [{ from, policies: value as unknown as Policies }];
  return fields.map(([name, policies]) => ({ name, from: `${from}: ${name}`, policies }));
}
