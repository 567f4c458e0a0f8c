import { bindingErrors } from "./bindings.ts";
import { type ConfigFile, type ConfigTable, isTable, readConfigFile, tables } from "./config-file.ts";
import { UsageError } from "./errors.ts";
import { Gateway, Misconfigured } from "./gateway.ts";
import { nearest } from "./near.ts";
import { shortDurations } from "./short-durations.ts";
import { unreachableRules } from "./unreachable.ts";

/** An error in a configuration, with its line and field. */
export interface ConfigError {
  readonly line: number;
  readonly field: string;
  readonly problem: string;
}

/** The configuration of a Worker. */
export interface Config {
  readonly file: ConfigFile;
  /** The gateway; undefined if its table has errors. */
  readonly gateway: Gateway | undefined;
  /** The names of the policies. */
  readonly policies: readonly string[];
  /** The method and path of each rule. */
  readonly rules: readonly string[];
  readonly errors: readonly ConfigError[];
  /** Warnings: values that are valid but probably not intended. */
  readonly warnings: readonly ConfigError[];
  /** Notes: valid settings that rely on something outside the file. */
  readonly notes: readonly ConfigError[];
}

/** Reads a configuration, or that of an environment, and finds all errors in it. */
export function readConfig(path: string, environment?: string): Config {
  const file = readConfigFile(path);
  const [worker, nameOf] = workerOf(file, environment);
  const at = (field: string, problem: string): ConfigError => {
    const name = nameOf(field);
    return { line: file.lineOf(name), field: name, problem };
  };
  const errors: ConfigError[] = [];
  const table = tableOf(worker, (problem) => errors.push(at("vars.TOLLGATE", problem)));
  let gateway: Gateway | undefined;
  try {
    if (errors.length === 0) gateway = new Gateway(table);
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error;
    for (const [field, problem] of error.problems)
      errors.push(at(`vars.TOLLGATE${field === "" ? "" : `.${field}`}`, problem));
  }
  for (const [field, problem] of [
    ...misspeltTables(worker),
    ...bindingErrors(worker, table, gateway?.upstream),
  ])
    errors.push(at(field, problem));
  if (gateway !== undefined)
    for (const [rule, problem] of unreachableRules(table))
      errors.push(at(`vars.TOLLGATE.rules[${rule}].path`, problem));
  const policies = Object.keys(isTable(table["policies"]) ? table["policies"] : {});
  const rules = tables(table["rules"]).map(({ method, path }) => [method ?? [], path].flat().join(" "));
  const made = madeUpKeys(table).map((rule) => [`rules[${rule}].path`, madeUpWarning] as const);
  const warnings = [...shortDurations(table), ...(gateway === undefined ? [] : made)].map(
    ([field, problem]) => at(`vars.TOLLGATE.${field}`, problem),
  );
  const notes = byAddress(table).map((rule) => at(`vars.TOLLGATE.rules[${rule}].path`, addressNote));
  return { file, gateway, policies, rules, errors, warnings, notes: gateway === undefined ? [] : notes };
}

const addressNote =
  "this rule counts by CF-Connecting-IP; without Cloudflare in front of the Worker, a client writes that header itself";

const madeUpWarning =
  'a client can make up keys of this rule, and each is unused; add newKeys = { limit = 100, scale = "1h" }, or a limit by "ip"';

/** Returns the rules under which a client that makes up a header or a cookie is never limited. */
function madeUpKeys(table: ConfigTable): readonly number[] {
  const isMadeUp = ({ key }: ConfigTable) =>
    [key ?? "ip"].flat().some((part) => /^(header|cookie):/.test(String(part)));
  return tables([table["rules"] ?? []].flat()).flatMap((rule, at) => {
    const limits = rule["limits"] === undefined ? [rule] : tables([rule["limits"]].flat());
    const hasLimit = [rule["newKeys"], rule["new_keys"]].some((value) => value != null);
    return rule["mode"] === "skip" || hasLimit || !limits.every(isMadeUp) ? [] : [at];
  });
}

/** Returns the rules that count by the client's address. */
function byAddress(table: ConfigTable): readonly number[] {
  const hasAddress = ({ key }: ConfigTable, missing: unknown) => {
    const parts = [key ?? "ip"].flat().map(String);
    const mayLack = parts.some((part) => /^(header|cookie):/.test(part));
    return parts.includes("ip") || (mayLack && (missing ?? "ip") === "ip");
  };
  return tables([table["rules"] ?? []].flat()).flatMap((rule, at) => {
    const limits = rule["limits"] === undefined ? [rule] : tables([rule["limits"]].flat());
    const counts = limits.some((limit) => hasAddress(limit, rule["missing"]));
    return rule["mode"] !== "skip" && counts ? [at] : [];
  });
}

/** The fields that an environment inherits, unlike bindings and variables. */
const inherited = ["exports", "migrations", "compatibility_date", "compatibility_flags"];

/** Returns the table of an environment, and a function that returns the full name of a field in it. */
function workerOf(
  { value, path }: ConfigFile,
  environment: string | undefined,
): [ConfigTable, (field: string) => string] {
  if (environment === undefined) return [value, (field) => field];
  const all = isTable(value["env"]) ? value["env"] : {};
  const own = all[environment];
  if (!isTable(own)) {
    const known = Object.keys(all);
    const hint = known.length === 0 ? "it has none" : `it has ${known.join(", ")}`;
    throw new UsageError(`${path} has no environment ${environment}; ${hint}`);
  }
  const above = inherited.filter((field) => !(field in own));
  const isAbove = (field: string) => above.includes(field.replace(/\W.*/, ""));
  return [
    { ...Object.fromEntries(above.map((field) => [field, value[field]])), ...own },
    (field) => (isAbove(field) ? field : `env.${environment}.${field}`),
  ];
}

/** Returns the gateway's table, which may also be a string of JSON. */
function tableOf(worker: ConfigTable, addError: (problem: string) => void): ConfigTable {
  const vars = isTable(worker["vars"]) ? worker["vars"] : {};
  const { TOLLGATE: found = {} } = vars;
  if (isTable(found)) return found;
  if (typeof found !== "string") {
    addError("it is not a table");
    return {};
  }
  try {
    const parsed: unknown = JSON.parse(found);
    if (isTable(parsed)) return parsed;
    addError("it is not an object");
  } catch (error) {
    addError(`it is not JSON: ${(error as Error).message}`);
  }
  return {};
}

/** Yields the variables whose names are misspelt: the Worker would run without its limits. */
function* misspeltTables(worker: ConfigTable): Generator<[string, string]> {
  for (const [name, value] of Object.entries(isTable(worker["vars"]) ? worker["vars"] : {}))
    if (name !== "TOLLGATE" && isTable(value) && nearest(name.toUpperCase(), ["TOLLGATE"]) !== undefined)
      yield [`vars.${name}`, `${name} is not read; did you mean TOLLGATE?`];
}
