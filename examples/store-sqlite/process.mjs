import { StoreLimiter } from "tollgate/store";
import { SqliteStore } from "./store.mjs";

const store = new SqliteStore("limits.sqlite");
const policy = { algorithm: "fix_window", limit: 50, scale: "day" };
const limiter = new StoreLimiter(policy, { store });

const decisions = await Promise.all(Array.from({ length: 30 }, () => limiter.hit("newsletter")));
process.send(decisions.filter(({ allowed }) => allowed).length);
process.disconnect();
