import { readFileSync } from "node:fs";
import { buildFeature } from "./build.mjs";
import { inProject } from "./lib/paths.mjs";
import { Failure, green, say } from "./lib/say.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

/** The configuration as the Worker reads it: all mistakes, or the settings. */
async function read(config) {
  const rust = await import(inProject("build/cloudflare/tollgate.js"));
  rust.initSync({ module: readFileSync(inProject("build/cloudflare/tollgate_bg.wasm")) });
  try {
    return { upstream: new rust.Gateway(config).settings()[0] };
  } catch (thrown) {
    if (!Array.isArray(thrown)) throw thrown;
    return { mistakes: thrown.map(([path, problem]) => `TOLLGATE.${path}: ${problem}`) };
  }
}

/** What the configuration needs of the bindings beside it. */
function missing({ durable_objects, services }, upstream) {
  const mistakes = [];
  if (!durable_objects.bindings.some(({ name }) => name === "LIMITERS"))
    mistakes.push("durable_objects.bindings: there must be one with the name LIMITERS");
  const isService = upstream !== undefined && !/^https?:\/\//.test(upstream);
  if (isService && !services?.some(({ binding }) => binding === upstream))
    mistakes.push(`TOLLGATE.upstream: there is no service binding ${upstream}, and it is no URL`);
  return mistakes;
}

await afterSetUp(toBuild, async (found) => {
  await buildFeature("cloudflare", found);
  // Not at the top: on a fresh clone this file is read before there is a wrangler.
  const { unstable_readConfig: readConfig } = await import("wrangler");
  const [file = "wrangler.toml", env] = process.argv.slice(2);
  const config = readConfig({ config: inProject(file), env });
  const { upstream, mistakes = [] } = await read(config.vars.TOLLGATE ?? {});
  const all = [...mistakes, ...missing(config, upstream)];
  if (all.length > 0) throw new Failure(`${file} has mistakes`, { output: all.join("\n") });
  say(green(`${file} is right.`));
});
