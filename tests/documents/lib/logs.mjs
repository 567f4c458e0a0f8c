import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { logOf, traffic } from "../../cli/lib/traffic.mjs";

const config = `
[[durable_objects.bindings]]
name = "LIMITERS"
class_name = "RateLimiterObject"

[exports.RateLimiterObject]
type = "durable-object"
storage = "sqlite"

[vars.TOLLGATE]
upstream = "https://origin.example"

[vars.TOLLGATE.policies]
login = { algorithm = "sliding_window", limit = 5, scale = "1m" }

[[vars.TOLLGATE.rules]]
path = "/*"
policies = "login"
`;

const policies = { short: { algorithm: "fix_window", limit: 5, scale: "1m" } };

/** Writes the files that the documents name in commands. */
export function writeLogs(folder) {
  const hits = traffic({ hits: 300 });
  const events = hits.map(({ time, user = "nobody", bytes }) =>
    JSON.stringify({ at: new Date(time).toISOString(), account: user, tokens: bytes }),
  );
  const logins = hits.slice(290).map((hit) => ({ ...hit, ip: "10.0.0.1", path: "/login" }));
  mkdirSync(folder);
  for (const [name, content] of Object.entries({
    "access.log": logOf(hits.slice(200)) + logOf(logins).replaceAll('" 200 ', '" 401 '),
    "access.log.1": logOf(hits.slice(100, 200)),
    "access.log.2.gz": gzipSync(logOf(hits.slice(0, 100))),
    "requests.csv": logOf(hits, "csv"),
    "events.jsonl": events.join("\n"),
    "policies.json": JSON.stringify(policies),
    "wrangler.toml": config,
  }))
    writeFileSync(join(folder, name), content);
}
