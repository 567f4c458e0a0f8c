import { optionsGiven } from "./lib/options.mjs";
import { Failure, green, say, seconds } from "./lib/say.mjs";
import { afterSetUp, toTest } from "./setup.mjs";
import { inOrder } from "./test/in-order.mjs";
import { sideBySide } from "./test/side-by-side.mjs";
import { suites } from "./test/suites.mjs";

const given = optionsGiven(
  { only: { type: "string", multiple: true }, list: { type: "boolean" }, "in-order": { type: "boolean" } },
  "npm test, npm test -- --list, npm test -- --only <a word of a suite's name>, or npm test -- --in-order",
);

/** Returns whether a suite is to be run: `--only clippy` chooses every suite whose name contains that word. */
const wanted = ({ name }) => !given.only || given.only.some((word) => name.includes(word));

function table(times) {
  const width = Math.max(...times.map(({ name }) => name.length));
  for (const { name, took } of times) say(`  ${name.padEnd(width)}  ${seconds(took).padStart(12)}`);
}

async function runAll(found) {
  const chosen = suites.filter(wanted);
  if (chosen.length === 0)
    throw new Failure(`no suite has ${given.only.join(" or ")} in its name`, {
      remedy: "npm test -- --list",
    });
  const alone = given["in-order"] || new Set(chosen.map(({ queue }) => queue)).size === 1;
  const times = await (alone ? inOrder(chosen, found) : sideBySide(chosen, found));
  say("");
  table(times);
  say(green(`\nAll ${chosen.length} suites passed.`));
}

if (given.list) {
  for (const { name } of suites) say(name);
} else {
  await afterSetUp(toTest, runAll);
}
