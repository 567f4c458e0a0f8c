// A process of a fleet: asks the provider as it is told, under a budget in Redis, and says what was delivered to it.

import { budgetFetch } from "tollgate/ai";
import { RedisLimiter } from "tollgate/redis";
import { connect } from "../../redis/lib/server.mjs";
import { policies, prices } from "./setting.mjs";

const [port, url, prefix] = process.argv.slice(2);
const client = connect(Number(port), { maxRetriesPerRequest: 20 });
const limiter = new RedisLimiter(policies(), { client, prefix, timeout: "20s" });
const budgeted = (key) => budgetFetch({ limiter, key, prices });

/** Asks once, reads as much as the plan says, and returns how many tokens were delivered. */
async function ask({ key, api, stream, abort, leave, ...plan }) {
  const content = JSON.stringify({ ...plan, key });
  const body = {
    model: "gpt-5",
    max_tokens: 200,
    stream,
    ...(api === "/responses" ? { input: content } : { messages: [{ role: "user", content }] }),
  };
  const controller = new AbortController();
  const sent = { method: "POST", body: JSON.stringify(body), signal: controller.signal };
  let response = await budgeted(key)(url + api, sent);
  while (response.status === 429) response = await budgeted(key)(url + api, sent);
  let text = "";
  const words = () => text.match(/word/g)?.length ?? 0;
  try {
    for await (const chunk of response.body) {
      text += Buffer.from(chunk).toString();
      if (abort <= words()) controller.abort();
      if (leave <= words()) break;
      if (plan.crash <= words()) process.send({ crashing: true });
    }
  } catch {
    // Cut or aborted: what was delivered counts.
  }
  return words();
}

process.on("disconnect", () => process.exit());
process.on("message", async ({ asks }) => {
  const delivered = [];
  let next = 0;
  const work = async () => {
    while (next < asks.length) {
      const at = next++;
      delivered[at] = await ask(asks[at]);
    }
  };
  try {
    await Promise.all(Array.from({ length: 6 }, work));
    process.send({ delivered });
  } catch (error) {
    process.send({ error: error.stack });
  }
});
process.send({ ready: true });
