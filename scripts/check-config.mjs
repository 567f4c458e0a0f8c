import { build } from "./build.mjs";
import { inProject, ownNode } from "./lib/paths.mjs";
import { show } from "./lib/run.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

await afterSetUp(toBuild, async (found) => {
  await build(found);
  const [file = inProject("wrangler.toml"), environment] = process.argv.slice(2);
  const args = environment === undefined ? [file] : [file, "--env", environment];
  // npm runs scripts in the project, and has the caller's folder in INIT_CWD.
  const cwd = process.env.INIT_CWD ?? process.cwd();
  await show(ownNode, [inProject("dist/command.js"), "check", ...args], { cwd });
});
