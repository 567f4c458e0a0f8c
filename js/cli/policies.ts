import { existsSync, readFileSync } from "node:fs";
import type { Policies } from "../index.ts";
import type { Config } from "./config.ts";
import { CommandError, UsageError } from "./errors.ts";

/** Policies that are tried together, under a name if they have one. */
export interface NamedPolicies {
  readonly name?: string;
  readonly policies: Policies;
}

/**
 * Reads the value of `--policy`: a policy or a list of them in JSON, a file of JSON, or the name of a policy in the
 * configuration. A file may also have policies by their names, which are tried side by side.
 */
export function readPolicies(text: string, config: Config | undefined): readonly NamedPolicies[] {
  if (/^\s*[[{]/.test(text)) return named(parsed(text, "--policy"));
  if (config?.policies.includes(text) && config.gateway !== undefined)
    return [{ name: text, policies: config.gateway.policy(text) }];
  if (existsSync(text)) return named(parsed(readFileSync(text, "utf8"), text));
  const known =
    config === undefined ? "" : `, and ${config.file.path} has the policies ${config.policies.join(", ")}`;
  throw new UsageError(`--policy: ${JSON.stringify(text)} is neither JSON nor a file${known}`);
}

function parsed(text: string, from: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const problem = `${from}: it is not JSON: ${(error as Error).message}`;
    throw from === "--policy" ? new UsageError(problem) : new CommandError(problem);
  }
}

function named(value: unknown): readonly NamedPolicies[] {
  const isTable =
    typeof value === "object" && value !== null && !Array.isArray(value) && !("algorithm" in value);
  if (!isTable) return [{ policies: value as Policies }];
  const fields = Object.entries(value);
  // An object with other values is taken for a misspelt policy: the core returns the error.
  const areTables =
    fields.length > 0 && fields.every(([, each]) => typeof each === "object" && each !== null);
  if (!areTables) return [{ policies: value as unknown as Policies }];
  return fields.map(([name, policies]) => ({ name, policies }));
}
