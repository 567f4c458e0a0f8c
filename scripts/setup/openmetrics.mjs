import { existsSync } from "node:fs";
import { join } from "node:path";
import { finished } from "../lib/finished.mjs";
import { tools } from "../lib/paths.mjs";
import { outputOf } from "../lib/run.mjs";
import { Failure } from "../lib/say.mjs";
import { isDebian, unpack, updateLists, wrap } from "./debian.mjs";

const home = join(tools, "debian-openmetrics");
const unpacked = join(home, "bin/python3-openmetrics");

/** Whether a Python has the parser of OpenMetrics: Prometheus's own client, the reference of the format. */
const parses = (program) =>
  outputOf(program, ["-c", "import prometheus_client.openmetrics.parser"], { timeout: 60_000 }) !== null;

const missing = () =>
  new Failure("no Python with prometheus_client", {
    remedy: "install python3-prometheus-client, then run this again.",
  });

async function make() {
  if (!isDebian()) throw missing();
  await updateLists();
  await finished(home, async (folder) => {
    await unpack(folder, ["python3-prometheus-client"]);
    const packages = 'PYTHONPATH="$here/usr/lib/python3/dist-packages"';
    // A Python that was missing as well is unpacked beside the parser.
    const own = existsSync(join(folder, "usr/bin/python3")) ? "usr/bin/python3" : "python3";
    if (!parses(wrap(folder, "python3-openmetrics", own, packages))) throw missing();
  });
}

/** The step of the parser that the tests of metrics use. Its result is the path of a Python. */
export const openMetrics = {
  id: "openMetrics",
  name: "OpenMetrics parser",
  what: "no prometheus_client for Python; unpacking Debian's into the tools folder (a few seconds)",
  check: () => (parses("python3") ? "python3" : existsSync(unpacked) ? unpacked : null),
  make,
};
