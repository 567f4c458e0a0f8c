import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { openMetrics } from "../../../scripts/setup/openmetrics.mjs";

const program = fileURLToPath(new URL("parse.py", import.meta.url));

/** Returns the families of OpenMetrics text by their names, as Prometheus's own parser for Python reads them. */
export function parsed(text) {
  const output = execFileSync(openMetrics.check(), [program], {
    input: text,
    encoding: "utf8",
    timeout: 120_000,
    maxBuffer: 1 << 28,
  });
  return Object.fromEntries(JSON.parse(output).map((family) => [family.name, family]));
}

/** Returns the samples of a family: its labels' values joined, and the value. */
export const samplesOf = ({ samples }) =>
  samples.map(([name, labels, value]) => [name, labels, Number(value.replace("+Inf", "Infinity"))]);
