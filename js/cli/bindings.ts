import { type ConfigTable, isTable, tables } from "./config-file.ts";

/** The first date on which stubs of objects have methods, by the compatibility flag `rpc`. */
const firstDate = "2024-04-03";

/** The settings by which a Worker is a gateway, which finds its objects under the name LIMITERS. */
const ofGateway = ["upstream", "policies", "rules"];

/** Yields the errors in what the limiters of a Worker need. `table` is the gateway's, empty in other Workers. */
export function* bindingErrors(
  worker: ConfigTable,
  table: ConfigTable,
  upstream: string | undefined,
): Generator<[string, string]> {
  yield* dateErrors(worker);
  const objects = isTable(worker["durable_objects"]) ? tables(worker["durable_objects"]["bindings"]) : [];
  const isGateway = ofGateway.some((field) => field in table);
  const isLimiter = ({ name, class_name: className }: ConfigTable) =>
    name === "LIMITERS" || (!isGateway && className === "RateLimiterObject");
  for (const [at, binding] of objects.entries())
    if (isLimiter(binding)) yield* classErrors(`durable_objects.bindings[${at}]`, binding, worker);
  if (isGateway && !objects.some(isLimiter))
    yield ["durable_objects.bindings", "a binding with the name LIMITERS is required"];
  // Other Workers may give the binding any name, and the class too.
  if (!isGateway && objects.length === 0)
    yield ["durable_objects.bindings", "a binding of the class RateLimiterObject is required"];
  yield* upstreamErrors(upstream, tables(worker["services"]));
}

/** Yields the error of a date that is too old: every call of an object would fail, and `onError` would decide. */
function* dateErrors(worker: ConfigTable): Generator<[string, string]> {
  const { compatibility_date: date, compatibility_flags: flags } = worker;
  if (typeof date === "string" && date < firstDate && !includes(flags, "rpc"))
    yield [
      "compatibility_date",
      `"${date}" is too old to call an object's methods; use "${firstDate}" or later`,
    ];
}

function* upstreamErrors(
  upstream: string | undefined,
  services: readonly ConfigTable[],
): Generator<[string, string]> {
  if (upstream === undefined || /^https?:\/\//.test(upstream)) return;
  const names = services.map(({ binding }) => binding);
  if (names.includes(upstream)) return;
  const known = names.length === 0 ? "there is none" : `there are ${names.join(", ")}`;
  yield ["vars.TOLLGATE.upstream", `"${upstream}" is not a URL or the name of a service binding; ${known}`];
}

/** Yields the errors in the class of a binding, which `exports` declares or, in the older form, a migration creates. */
function* classErrors(
  field: string,
  { class_name: className, script_name: scriptName }: ConfigTable,
  { exports, migrations }: ConfigTable,
): Generator<[string, string]> {
  if (typeof className !== "string" || className === "") {
    yield [`${field}.class_name`, "is required (the name of a class that the Worker exports)"];
    return;
  }
  // The class is another Worker's, which declares it.
  if (scriptName !== undefined) return;
  if (isTable(exports)) yield* exportErrors(field, className, exports, tables(migrations));
  else yield* migrationErrors(field, className, tables(migrations));
}

function* exportErrors(
  field: string,
  className: string,
  exports: ConfigTable,
  migrations: readonly ConfigTable[],
): Generator<[string, string]> {
  if (migrations.length > 0) yield ["migrations", "are not accepted beside exports; remove them"];
  const declared = exports[className];
  const { type, storage, state = "created" } = isTable(declared) ? declared : {};
  const isThere = type === "durable-object" && ["created", "expecting-transfer"].includes(String(state));
  if (!isThere)
    yield [
      `${field}.class_name`,
      `exports does not declare the class ${className}; ${declaration(className)}`,
    ];
  else if (storage !== "sqlite")
    yield [`exports.${className}.storage`, `${className} keeps its states in SQLite; use storage = "sqlite"`];
}

const declaration = (className: string) =>
  `add [exports.${className}] with type = "durable-object" and storage = "sqlite"`;

function* migrationErrors(
  field: string,
  className: string,
  migrations: readonly ConfigTable[],
): Generator<[string, string]> {
  const inMemory = migrations.findIndex(({ new_classes: classes }) => includes(classes, className));
  if (inMemory >= 0)
    yield [
      `migrations[${inMemory}].new_classes`,
      `${className} keeps its states in SQLite, so it belongs in new_sqlite_classes`,
    ];
  const classes = createdBy(migrations);
  if (inMemory >= 0 || classes.has(className)) return;
  const remedy = classes.size === 0 ? declaration(className) : `migrations create ${[...classes].join(", ")}`;
  yield [`${field}.class_name`, `nothing creates the class ${className}; ${remedy}`];
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

const includes = (list: unknown, name: unknown) => Array.isArray(list) && list.includes(name);
