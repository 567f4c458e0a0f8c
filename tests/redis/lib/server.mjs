// A redis-server of the tests' own: on a free port, without a configuration file, and gone when the tests are.

import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { redis } from "../../../scripts/setup/redis.mjs";

/**
 * Returns a free port below the range of ephemeral ports, which another process or a client's own connection could take
 * before it is used. A node of a Cluster also uses the port that is higher by 10,000.
 */
export async function freePort() {
  for (;;) {
    const port = 10_000 + randomInt(10_000);
    const server = createServer();
    const isFree = once(server.listen(port, "127.0.0.1"), "listening").then(
      () => true,
      () => false,
    );
    if (await isFree) {
      await once(server.close(), "close");
      return port;
    }
  }
}

/** Starts a server, perhaps another than that of the tests, which ends with `stop()` or with this process. */
export async function startServer({ port, args = [], program = redis.check() } = {}) {
  const used = port ?? (await freePort());
  const folder = mkdtempSync(join(tmpdir(), "tollgate-redis-"));
  const settings = [
    "--port",
    used,
    "--bind",
    "127.0.0.1",
    "--save",
    "",
    "--appendonly",
    "no",
    "--dir",
    folder,
  ];
  const child = spawn(program, [...settings, ...args].map(String), {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const end = () => child.kill("SIGKILL");
  process.once("exit", end);
  await new Promise((resolve, reject) => {
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
      if (output.includes("Ready to accept connections")) resolve();
    });
    child.once("exit", () => reject(new Error(`redis-server ended:\n${output}`)));
  });
  return {
    port: used,
    pid: child.pid,
    signal: (name) => child.kill(name),
    async stop() {
      process.off("exit", end);
      if (child.exitCode === null && child.signalCode === null) {
        child.kill("SIGKILL");
        await once(child, "exit");
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Returns an ioredis client that never sends a command twice by itself, and says nothing of its errors. */
export function connect(port, options = {}) {
  const client = new Redis({ port, host: "127.0.0.1", maxRetriesPerRequest: 0, ...options });
  client.on("error", () => {});
  return client;
}
