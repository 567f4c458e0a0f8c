import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "./build.mjs";
import { inProject, root, withPath } from "./lib/paths.mjs";
import { show } from "./lib/run.mjs";
import { Failure } from "./lib/say.mjs";
import { readText } from "./lib/text.mjs";
import { wranglerEnv } from "./lib/wrangler.mjs";
import { packages } from "./setup/packages.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

const [name, ...rest] = process.argv.slice(2);

/** Returns the command that starts an example; undefined if its package.json has none. */
const commandOf = (name) =>
  JSON.parse(readText(inProject("examples", name, "package.json")) || "{}").scripts?.start;

const examples = readdirSync(inProject("examples")).filter(commandOf);

/** Copies an example, with a link to this clone in place of the installed package. Returns the folder. */
function installed(name) {
  const folder = inProject("build/examples", name);
  rmSync(folder, { recursive: true, force: true });
  cpSync(inProject("examples", name), folder, { recursive: true });
  const link = join(folder, "node_modules/tollgate");
  mkdirSync(dirname(link));
  symlinkSync(root, link, "junction");
  return folder;
}

const isBuilt = existsSync(inProject("dist/index.js"));

await afterSetUp(isBuilt ? [packages] : toBuild, async (found) => {
  if (!examples.includes(name))
    throw new Failure(`there is no example "${name ?? ""}"`, {
      remedy: `npm run example -- and one of ${examples.join(", ")}`,
    });
  if (!isBuilt) await build(found);
  const cwd = installed(name);
  const env = withPath([inProject("node_modules/.bin")], wranglerEnv);
  const [command, ...args] = [...commandOf(name).split(" "), ...rest];
  // Without a shell if possible, since a shell does not forward the signal that ends it.
  await show(command, args, { cwd, env, shell: /[=&]/.test(commandOf(name)) });
});
