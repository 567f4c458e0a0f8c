// Processes that share a Redis.

import { fork } from "node:child_process";

const worker = new URL("worker.mjs", import.meta.url);

/** Starts so many processes, whose clocks are up to five minutes off either way. */
export async function startFleet(port, size) {
  const members = await Promise.all(
    Array.from({ length: size }, async (_, number) => {
      const skew = Math.round(((2 * number) / (size - 1) - 1) * 300_000);
      const child = fork(worker, [port, skew].map(String));
      await new Promise((resolve) => child.once("message", resolve));
      return child;
    }),
  );
  let jobs = 0;
  return {
    members,
    /**
     * Has every member that lives do a job, perhaps one that depends on its number, and returns what each says;
     * `undefined` for one that was killed.
     */
    run(task, onHalf = () => {}) {
      const job = ++jobs;
      return Promise.all(
        members.map(
          (child, number) =>
            new Promise((resolve, reject) => {
              if (child.exitCode !== null || child.signalCode !== null) {
                resolve(undefined);
                return;
              }
              const exit = () => resolve(undefined);
              const listen = (message) => {
                if (message.job !== job) return;
                if (message.half) {
                  onHalf(child);
                  return;
                }
                child.off("message", listen).off("exit", exit);
                if (message.error) reject(new Error(message.error));
                else resolve(message);
              };
              child.on("message", listen).once("exit", exit);
              child.send({ job, ...(typeof task === "function" ? task(number) : task) });
            }),
        ),
      );
    },
    stop() {
      for (const child of members) child.kill("SIGKILL");
    },
  };
}
