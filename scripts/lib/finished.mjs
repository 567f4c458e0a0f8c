import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * Fills a folder that either exists whole or not at all: the work happens beside it,
 * under a name of this process, and a rename is the last thing.
 */
export async function finished(folder, fill) {
  const draft = `${folder}.${process.pid}.part`;
  mkdirSync(dirname(folder), { recursive: true });
  removeAbandonedDrafts(folder);
  mkdirSync(draft);
  try {
    await fill(draft);
    rmSync(folder, { recursive: true, force: true });
    renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** What a process that was killed left behind. */
function removeAbandonedDrafts(folder) {
  const parent = dirname(folder);
  for (const name of readdirSync(parent)) {
    const [, pid] = name.match(/\.(\d+)\.part$/) ?? [];
    if (
      pid &&
      name.startsWith(`${basename(folder)}.`) &&
      (Number(pid) === process.pid || !isRunning(Number(pid)))
    ) {
      rmSync(join(parent, name), { recursive: true, force: true });
    }
  }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
