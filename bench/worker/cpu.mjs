import { readdirSync, readFileSync } from "node:fs";

/**
 * Returns the CPU time of all threads of a process, in milliseconds; undefined where the system does not say. On a busy
 * machine it says more than the time that passes.
 */
export function cpuOf(pid) {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const times = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8"));
    return times.reduce((sum, line) => sum + Number.parseInt(line, 10) / 1e6, 0);
  } catch {
    return undefined;
  }
}
