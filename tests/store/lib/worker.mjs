// A process that hits a key in a file of SQLite as often as it is told, and reports each hit when it is decided.

import { StoreLimiter } from "tollgate/store";
import { SqliteStore } from "../../../examples/store-sqlite/store.mjs";

const [file, hits, inFlight, ...rest] = process.argv.slice(2);
const policies = JSON.parse(rest[0]);
const limiter = new StoreLimiter(policies, {
  store: new SqliteStore(file),
  timeout: "30s",
  maxTries: 10_000,
});

process.on("disconnect", () => process.exit());
process.on("message", async () => {
  let left = Number(hits);
  await Promise.all(
    Array.from({ length: Number(inFlight) }, async () => {
      while (left > 0) {
        left--;
        const { allowed } = await limiter.hit("hot");
        process.send({ allowed });
      }
    }),
  );
  process.send({ stats: limiter.stats });
});
process.send("ready");
