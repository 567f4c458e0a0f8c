import { existsSync } from "node:fs";
import { join } from "node:path";
import { finished } from "../lib/finished.mjs";
import { tools } from "../lib/paths.mjs";
import { outputOf } from "../lib/run.mjs";
import { Failure } from "../lib/say.mjs";
import { isDebian, unpack, updateLists, wrap } from "./debian.mjs";

const home = join(tools, "debian-tmux");
const unpacked = join(home, "bin/tmux");

const runs = (program) => outputOf(program, ["-V"], { timeout: 60_000 }) !== null;

const missing = () => new Failure("no tmux", { remedy: "install tmux, then run this again." });

async function make() {
  if (!isDebian()) throw missing();
  await updateLists();
  await finished(home, async (folder) => {
    await unpack(folder, ["tmux"]);
    if (!runs(wrap(folder, "tmux", "usr/bin/tmux"))) throw missing();
  });
}

/** The step of the terminal in which the tests of `tollgate top` run. Its result is the path of tmux. */
export const tmux = {
  id: "tmux",
  name: "tmux",
  what: "no tmux found; unpacking Debian's into the tools folder (a few seconds)",
  check: () => (runs("tmux") ? "tmux" : existsSync(unpacked) ? unpacked : null),
  make,
};
