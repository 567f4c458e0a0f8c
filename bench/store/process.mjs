import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { StoreLimiter } from "tollgate/store";
import { SqliteStore } from "../../examples/store-sqlite/store.mjs";

const file = new SqliteStore(process.argv[2]);
const far = async (work) => {
  await setTimeout(1);
  const result = work();
  await setTimeout(1);
  return result;
};
const store = {
  get: (key) => far(() => file.get(key)),
  swap: (...change) => far(() => file.swap(...change)),
};
const limiter = new StoreLimiter({ algorithm: "fix_window", limit: 1_000_000_000, scale: "day" }, { store });

process.send("ready");
const [{ seconds }] = await once(process, "message");
const end = Date.now() + 1_000 * seconds;
const tries = [];
let late = 0;
while (Date.now() < end) {
  const before = limiter.stats.swaps;
  try {
    await limiter.hit("one");
    tries.push(limiter.stats.swaps - before);
  } catch (error) {
    if (error.code !== "contended" && error.code !== "unanswered") throw error;
    late += 1;
  }
}
process.send({ tries, late });
