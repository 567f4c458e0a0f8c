import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mock } from "node:test";
import { unstable_readConfig as readConfig } from "wrangler";
import { inProject } from "../../../scripts/lib/paths.mjs";
import { tollgate } from "../../cli/lib/tollgate.mjs";

const folder = join(process.env.TOLLGATE_PACKED, "tables");
const isManifest = ({ text }) => /^\[dependencies\]/m.test(text);

/** A table of TOML is a configuration of the Worker, or a part of one; or of a Cargo.toml. */
export async function checkTable(block) {
  if (isManifest(block)) checkDependency(block);
  else assert.deepEqual(await mistakesOf(block), []);
}

/** The policies of all configurations that are right; where two are of one name, those of the first. */
export async function policiesOf(blocks) {
  const policies = {};
  for (const block of blocks.filter((block) => !isManifest(block)).reverse())
    if ((await mistakesOf(block)).length === 0)
      Object.assign(policies, configOf(block).config.vars.TOLLGATE?.policies);
  return policies;
}

/** A part of a configuration must be right in itself; only a whole one has bindings. */
async function mistakesOf(block) {
  const { config, file, warnings } = configOf(block);
  const isWhole = config.durable_objects.bindings.length > 0;
  const ofBindings = /^durable_objects|service binding/;
  const { errors } = JSON.parse((await tollgate(["check", file, "--json"])).stdout);
  const found = errors.map(({ field, problem }) => `${field}: ${problem}`);
  return [...warnings, ...found.filter((error) => isWhole || !ofBindings.test(error))];
}

/** As wrangler reads it, which reads files, and only warns of what it does not know. */
function configOf({ name, text }) {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${name}.toml`);
  writeFileSync(file, text);
  const { mock: told } = mock.method(console, "warn", () => {});
  try {
    const config = readConfig({ config: file });
    return { config, file, warnings: told.calls.map(({ arguments: words }) => words.join(" ")) };
  } finally {
    told.restore();
  }
}

/** What a Cargo.toml is told to ask for is what this crate is. */
function checkDependency({ text }) {
  const manifest = readFileSync(inProject("Cargo.toml"), "utf8");
  const [, version] = manifest.match(/^version = "(.*)"$/m);
  const [, wanted] = text.match(/^tollgate = (?:\{ version = )?"(.*?)"/m) ?? [];
  assert.ok(wanted && version.startsWith(wanted), `tollgate ${wanted} is not ${version}`);
  for (const [, names] of text.matchAll(/features = \[(.*?)\]/g))
    for (const [, name] of names.matchAll(/"(.*?)"/g))
      assert.match(manifest, new RegExp(`^${name} = \\[`, "m"));
}
