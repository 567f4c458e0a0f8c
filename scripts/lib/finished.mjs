import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * Fills a folder atomically: `fill` writes to a folder beside it, under a name of this process,
 * which is renamed at the end.
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

/** Removes the folders of processes that were killed. */
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
