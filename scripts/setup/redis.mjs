import { existsSync } from "node:fs";
import { join } from "node:path";
import { finished } from "../lib/finished.mjs";
import { tools } from "../lib/paths.mjs";
import { outputOf } from "../lib/run.mjs";
import { Failure } from "../lib/say.mjs";
import { isDebian, unpack, updateLists, wrap } from "./debian.mjs";

const home = join(tools, "debian-redis");

const servers = [process.env.REDIS_SERVER, "redis-server", "valkey-server"];

/** Returns a server's version; `undefined` if it does not run or is too old for the limiter. */
function version(program) {
  const found = outputOf(program, ["--version"], { timeout: 60_000 })?.match(/\bv=(\d+)\.(\d+)/);
  const [, major, minor] = (found ?? []).map(Number);
  return major > 6 || (major === 6 && minor >= 2) ? `${major}.${minor}` : undefined;
}

/** Returns an installed server; undefined if there is none. */
const installed = () => servers.filter(Boolean).find(version);

/** Returns an installed Valkey; undefined if there is none. */
export const valkey = () => [process.env.VALKEY_SERVER, "valkey-server"].filter(Boolean).find(version);

const unpacked = () => (existsSync(home) ? join(home, "bin/redis-server") : undefined);

const missing = () =>
  new Failure("no redis-server or valkey-server from version 6.2 on", {
    remedy: "install one, or name it in REDIS_SERVER, then run this again.",
  });

async function make() {
  if (!isDebian()) throw missing();
  await updateLists();
  await finished(home, async (folder) => {
    await unpack(folder, ["redis-server"]);
    if (!version(wrap(folder, "redis-server", "usr/bin/redis-server"))) throw missing();
  });
}

/** The step of Redis. Its result is the path of a server; no service is installed, since the tests start their own. */
export const redis = {
  id: "redis",
  name: "Redis",
  what: "no redis-server found; unpacking Debian's into the tools folder (a few seconds)",
  check: () => installed() ?? unpacked() ?? null,
  make,
};
