import { resolve } from "node:path";
import { buildFeature } from "./build.mjs";
import { mistakesIn } from "./lib/config.mjs";
import { inProject } from "./lib/paths.mjs";
import { Failure, green, say } from "./lib/say.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

await afterSetUp(toBuild, async (found) => {
  await buildFeature("worker", found);
  // Not at the top: on a fresh clone this file is read before there is a wrangler.
  const { unstable_readConfig: readConfig } = await import("wrangler");
  const [file = inProject("wrangler.toml"), env] = process.argv.slice(2);
  // npm starts us in the project, and says where it was started itself.
  const config = resolve(process.env.INIT_CWD ?? ".", file);
  const mistakes = await mistakesIn(read(readConfig, config, env));
  if (mistakes.length > 0) throw new Failure(`${file} has mistakes`, { output: mistakes.join("\n") });
  say(green(`${file} is right.`));
});

/** What wrangler makes of a file. */
function read(readConfig, config, env) {
  try {
    return readConfig({ config, env });
  } catch ({ text, message, notes = [], location }) {
    const place = location ? [`line ${location.line}: ${location.lineText}`] : [];
    const output = [text ?? message, ...notes.map(({ text }) => text), ...place].join("\n");
    throw new Failure(`${config} cannot be read`, {
      output,
      remedy: "npm run check-config -- <file> <environment>; without them, wrangler.toml and none",
    });
  }
}
