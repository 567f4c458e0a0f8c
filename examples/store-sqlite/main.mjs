import { fork } from "node:child_process";
import { once } from "node:events";
import { SqliteStore } from "./store.mjs";

// SQLite sets the mode of a new file only while no other process opens it.
new SqliteStore("limits.sqlite");

const processes = Array.from({ length: 4 }, () => fork(new URL("process.mjs", import.meta.url)));
const answers = await Promise.all(processes.map((each) => once(each, "message")));
const allowed = answers.reduce((sum, [count]) => sum + count, 0);
console.log(`${allowed} of 120 allowed`);
