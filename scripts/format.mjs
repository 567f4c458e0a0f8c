import { bin } from "./lib/paths.mjs";
import { show } from "./lib/run.mjs";
import { packages } from "./setup/packages.mjs";
import { afterSetUp } from "./setup.mjs";

await afterSetUp([packages], async () => {
  await show("cargo", ["fmt", "--all"]);
  await show(bin("biome"), ["check", "--write"]);
});
