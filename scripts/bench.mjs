import { writeNumbers } from "../bench/summary.mjs";
import { build } from "./build.mjs";
import { inProject } from "./lib/paths.mjs";
import { show } from "./lib/run.mjs";
import { bold, Failure, say } from "./lib/say.mjs";
import { afterSetUp, toBench } from "./setup.mjs";

const node = (file) => () => show(process.execPath, [inProject(file), "--save"]);

/** Each writes its own section of bench/RESULTS.md. */
const benches = {
  native: () => show("cargo", ["bench", "-p", "tollgate-benches", "--", "--save"]),
  node: node("bench/node/main.mjs"),
  throttle: node("bench/throttle/main.mjs"),
  ai: node("bench/ai/main.mjs"),
  replay: node("bench/replay/main.mjs"),
  frameworks: node("bench/frameworks/main.mjs"),
  redis: node("bench/redis/main.mjs"),
  store: node("bench/store/main.mjs"),
  worker: node("bench/worker/main.mjs"),
};

const args = process.argv.slice(2);
const chosen = args.length > 0 ? args : Object.keys(benches);

await afterSetUp(toBench, async (found) => {
  const unknown = chosen.find((name) => !(name in benches));
  if (unknown)
    throw new Failure(`there is no bench "${unknown}"`, {
      remedy: `npm run bench, or npm run bench -- and some of ${Object.keys(benches).join(", ")}`,
    });
  await build(found);
  for (const name of chosen) {
    say(bold(`\n${name}`));
    await benches[name]();
  }
  writeNumbers();
});
