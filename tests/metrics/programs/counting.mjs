// Hits a key as often as the argument says, and sends its metrics.

import { RateLimiter } from "tollgate";
import { metrics } from "tollgate/metrics";

const counted = metrics();
const limiter = new RateLimiter({ algorithm: "fix_window", limit: 1, scale: "1d", name: "a b" });
for (let count = 0; count < Number(process.argv[2]); count += 1) limiter.hit("a key");
process.send(counted.text());
