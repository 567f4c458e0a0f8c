// Measures plans: the memory of a customer and the time of a guarded request, with one policy for all and one for each.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { RateLimiter } from "tollgate";
import { rateLimit } from "tollgate/fetch";
import { table } from "../results.mjs";

const customers = 10_000;
const rounds = 30;
const response = new Response();

const policyOf = (limit) => ({ name: "api", algorithm: "fix_window", limit: 1_000_000 + limit, scale: "1d" });

const cached = Array.from({ length: customers }, (_, customer) => policyOf(customer));

/** Plans by customer; `undefined` for one policy for all. */
const plans = {
  "one policy for all": undefined,
  "a policy of its own for each": (customer) => policyOf(customer),
  "the same, from a cache of the server's": (customer) => cached[customer],
};

function used() {
  for (let pass = 0; pass < 4; pass++) globalThis.gc();
  const { heapUsed, arrayBuffers, external } = process.memoryUsage();
  return heapUsed + Math.max(arrayBuffers, external);
}

/** Returns the bytes a customer, and the nanoseconds a request, the best round of several. */
async function measure(name) {
  const planOf = plans[name];
  const limiter = new RateLimiter(policyOf(0), { maxKeys: customers });
  const options = { limiter, key: ({ customer }) => customer, headers: "none" };
  if (planOf !== undefined) options.policyFor = ({ customer }) => planOf(customer);
  const limited = rateLimit(options, () => response);
  const requests = Array.from({ length: customers }, (_, customer) => ({ customer }));
  await limited({ customer: customers - 1 });
  const before = used();
  for (const request of requests) await limited(request);
  const bytes = (used() - before) / customers;
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const started = process.hrtime.bigint();
    for (const request of requests) await limited(request);
    best = Math.min(best, Number(process.hrtime.bigint() - started) / customers);
  }
  return [bytes, best];
}

export function plansOfCustomers() {
  process.stderr.write("  plans\n");
  const rows = Object.keys(plans).map((name) => {
    const args = ["--expose-gc", fileURLToPath(import.meta.url), name];
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
    const [bytes, time] = JSON.parse(stdout);
    return [name, bytes.toFixed(0), time.toFixed(0)];
  });
  const head = ["`policyFor`, with `tollgate/fetch`", "bytes a customer", "ns a request"];
  return `### Plans, ${customers.toLocaleString("en")} customers\n\n${table(head, rows)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  console.log(JSON.stringify(await measure(process.argv[2])));
