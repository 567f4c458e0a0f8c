import { join } from "node:path";
import { show } from "./lib/run.mjs";
import { Failure } from "./lib/say.mjs";
import { cargoMutants } from "./setup/cargo-mutants.mjs";
import { packages } from "./setup/packages.mjs";
import { afterSetUp } from "./setup.mjs";

/** What is mutated: the decisions, and what they depend on. */
const mutated = ["src/algorithm", "src/key", "src/lease", "src/policy"];

/** The packages whose tests must notice: the core's own, and the properties. */
const noticing = "tollgate,tollgate-properties";

const chosen = process.argv.slice(2);

await afterSetUp([packages, cargoMutants], async ({ cargoMutants: bin }) => {
  const unknown = chosen.find((path) => !mutated.some((folder) => path.startsWith(folder)));
  if (unknown)
    throw new Failure(`"${unknown}" is not mutated`, {
      remedy: `npm run mutants, or npm run mutants -- and files or folders in ${mutated.join(", ")}`,
    });
  const files = (chosen.length > 0 ? chosen : mutated).flatMap((path) =>
    path.endsWith(".rs") ? ["-f", path] : ["-f", `${path}/**`, "-f", `${path}.rs`],
  );
  const args = [
    "mutants",
    "-p",
    "tollgate",
    "--test-package",
    noticing,
    "--features",
    "tollgate/system-clock",
  ];
  await show(join(bin, "cargo-mutants"), [...args, "--output", "target/mutants", ...files]);
});
