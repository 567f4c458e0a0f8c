import { type ConfigFile, type ConfigTable, readConfigFile } from "./config-file.ts";
import { UsageError } from "./errors.ts";
import { Gateway, Misconfigured } from "./gateway.ts";

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
}

/** Reads a configuration, or that of an environment, and finds all errors in it. */
export function readConfig(path: string, environment?: string): Config {
  const file = readConfigFile(path);
  const [worker, prefix] = workerOf(file, environment);
  const at = (field: string, problem: string): ConfigError => ({ line: file.lineOf(field), field, problem });
  const errors: ConfigError[] = [];
  const table = tableOf(worker, (problem) => errors.push(at(`${prefix}vars.TOLLGATE`, problem)));
  let gateway: Gateway | undefined;
  try {
    if (errors.length === 0) gateway = new Gateway(table);
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error;
    for (const [field, problem] of error.problems)
      errors.push(at(`${prefix}vars.TOLLGATE${field === "" ? "" : `.${field}`}`, problem));
  }
  for (const [field, problem] of bindingErrors(worker, gateway?.upstream))
    errors.push(at(`${prefix}${field}`, problem));
  const policies = Object.keys(isTable(table["policies"]) ? table["policies"] : {});
  const rules = tables(table["rules"]).map(({ method, path }) => [method ?? [], path].flat().join(" "));
  return { file, gateway, policies, rules, errors };
}

const isTable = (value: unknown): value is ConfigTable =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the table of an environment and the prefix of its fields. Bindings are not inherited; migrations are. */
function workerOf({ value, path }: ConfigFile, environment: string | undefined): [ConfigTable, string] {
  if (environment === undefined) return [value, ""];
  const all = isTable(value["env"]) ? value["env"] : {};
  const own = all[environment];
  if (!isTable(own)) {
    const known = Object.keys(all);
    const hint = known.length === 0 ? "it has none" : `it has ${known.join(", ")}`;
    throw new UsageError(`${path} has no environment ${environment}; ${hint}`);
  }
  return [{ migrations: value["migrations"], ...own }, `env.${environment}.`];
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
    return JSON.parse(found);
  } catch (error) {
    addError(`it is not JSON: ${(error as Error).message}`);
    return {};
  }
}

/** Yields the errors in the bindings that the gateway needs. */
function* bindingErrors(worker: ConfigTable, upstream: string | undefined): Generator<[string, string]> {
  const objects = isTable(worker["durable_objects"]) ? worker["durable_objects"]["bindings"] : undefined;
  const limiters = tables(objects).findIndex(({ name }) => name === "LIMITERS");
  if (limiters < 0) yield ["durable_objects.bindings", "a binding with the name LIMITERS is required"];
  else
    yield* migrationErrors(
      `durable_objects.bindings[${limiters}]`,
      tables(objects)[limiters] as ConfigTable,
      tables(worker["migrations"]),
    );
  const isService = upstream !== undefined && !/^https?:\/\//.test(upstream);
  if (isService && !tables(worker["services"]).some(({ binding }) => binding === upstream))
    yield ["vars.TOLLGATE.upstream", `${upstream} is no URL, and there is no service binding of that name`];
}

/** Yields the errors in the class of a binding, which a migration must create. */
function* migrationErrors(
  field: string,
  { class_name: className, script_name: scriptName }: ConfigTable,
  migrations: readonly ConfigTable[],
): Generator<[string, string]> {
  if (typeof className !== "string" || className === "") {
    yield [`${field}.class_name`, "is required (the name of a class that the Worker exports)"];
    return;
  }
  // The class is another Worker's, which has the migrations.
  if (scriptName !== undefined) return;
  const inMemory = migrations.findIndex(({ new_classes: classes }) => includes(classes, className));
  if (inMemory >= 0)
    yield [
      `migrations[${inMemory}].new_classes`,
      `${className} keeps its states in SQLite, so it belongs in new_sqlite_classes`,
    ];
  const classes = createdBy(migrations);
  if (inMemory >= 0 || classes.has(className)) return;
  const remedy =
    classes.size === 0
      ? `add a migration with new_sqlite_classes = ["${className}"]`
      : `migrations create ${[...classes].join(", ")}`;
  yield [`${field}.class_name`, `no migration creates the class ${className}; ${remedy}`];
}

/** Returns the classes that exist after all migrations. */
function createdBy(migrations: readonly ConfigTable[]): ReadonlySet<string> {
  const classes = new Set<string>();
  for (const migration of migrations) {
    for (const list of [migration["new_sqlite_classes"], migration["new_classes"]])
      if (Array.isArray(list)) for (const name of list) classes.add(String(name));
    for (const { from, to } of tables(migration["renamed_classes"])) {
      classes.delete(String(from));
      classes.add(String(to));
    }
    for (const { to } of tables(migration["transferred_classes"])) classes.add(String(to));
    const deleted = migration["deleted_classes"];
    if (Array.isArray(deleted)) for (const name of deleted) classes.delete(String(name));
  }
  return classes;
}

const tables = (list: unknown): readonly ConfigTable[] => (Array.isArray(list) ? list.filter(isTable) : []);

const includes = (list: unknown, name: unknown) => Array.isArray(list) && list.includes(name);
