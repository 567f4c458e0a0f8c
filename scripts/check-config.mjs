import { buildFeature } from "./build.mjs";
import { mistakesIn } from "./lib/config.mjs";
import { inProject } from "./lib/paths.mjs";
import { Failure, green, say } from "./lib/say.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

await afterSetUp(toBuild, async (found) => {
  await buildFeature("cloudflare", found);
  // Not at the top: on a fresh clone this file is read before there is a wrangler.
  const { unstable_readConfig: readConfig } = await import("wrangler");
  const [file = "wrangler.toml", env] = process.argv.slice(2);
  const mistakes = await mistakesIn(readConfig({ config: inProject(file), env }));
  if (mistakes.length > 0) throw new Failure(`${file} has mistakes`, { output: mistakes.join("\n") });
  say(green(`${file} is right.`));
});
