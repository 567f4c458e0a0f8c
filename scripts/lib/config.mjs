import { readFileSync } from "node:fs";
import { inProject } from "./paths.mjs";

/** What is wrong with a configuration as wrangler reads it: all mistakes at once, by their paths. */
export async function mistakesIn(config) {
  const { upstream, mistakes = [] } = await read(config.vars.TOLLGATE ?? {});
  return [...mistakes, ...missing(config, upstream)];
}

/** The configuration as the Worker reads it: all mistakes, or the settings. */
async function read(config) {
  const rust = await import(inProject("build/worker/tollgate.js"));
  rust.initSync({ module: readFileSync(inProject("build/worker/tollgate_bg.wasm")) });
  try {
    // As the Worker does: the table, or the same as JSON.
    const table = typeof config === "string" ? JSON.parse(config) : config;
    return { upstream: new rust.Gateway(table).settings()[0] };
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return { mistakes: [`TOLLGATE: ${thrown.message}`] };
    if (!Array.isArray(thrown)) throw thrown;
    return { mistakes: thrown.map(([path, problem]) => `TOLLGATE.${path}: ${problem}`) };
  }
}

/** What the configuration needs of the bindings beside it. */
function missing({ durable_objects, migrations, services }, upstream) {
  const mistakes = [];
  const limiters = durable_objects.bindings.find(({ name }) => name === "LIMITERS");
  if (limiters === undefined)
    mistakes.push("durable_objects.bindings: there must be one with the name LIMITERS");
  else if (migrations?.some(({ new_classes }) => new_classes?.includes(limiters.class_name)))
    mistakes.push(
      `migrations: ${limiters.class_name} keeps its states in SQLite, so it belongs in new_sqlite_classes`,
    );
  const isService = upstream !== undefined && !/^https?:\/\//.test(upstream);
  if (isService && !services?.some(({ binding }) => binding === upstream))
    mistakes.push(`TOLLGATE.upstream: there is no service binding ${upstream}, and it is no URL`);
  return mistakes;
}
