// A process that opens many new files of SQLite, one after the other, when it is told to.

import { join } from "node:path";
import { SqliteStore } from "../../../examples/store-sqlite/store.mjs";

const [folder, files] = process.argv.slice(2);

process.once("message", () => {
  for (let number = 0; number < Number(files); number++)
    new SqliteStore(join(folder, `${number}.sqlite`)).swap(`${process.pid}`, null, "text", 60_000);
  process.disconnect();
});
process.send("ready");
