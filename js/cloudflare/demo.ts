import { ask } from "./ask.ts";
import { isAllowed, named, plain } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import { type Ask, Isolate } from "./isolate.ts";

/** Ten at once, then one a second, for each address. */
const config = {
  timeout: "10s",
  policies: { demo: { algorithm: "token_bucket", capacity: 10, refillRate: 1, per: "1s" } },
  rules: [{ path: "/demo/hit", key: "ip", policies: "demo" }],
};

let isolate: Isolate | undefined;

/** The open route: limited by IP, answers the decision with the headers a client reads. */
export async function demoHit(request: Request, env: TollgateEnv): Promise<Response> {
  isolate ??= new Isolate(config);
  const { object, set, cost } = isolate.plan(request, "/demo/hit") as Ask;
  const numbers = await ask(env, isolate.timeout, object, "hit", isolate.sets[set]?.[0] as string, cost);
  if ("code" in numbers) throw new Error(numbers.message);
  const { headers, problem } = isolate.told(set, numbers);
  const type = isAllowed(numbers) ? "application/json" : "application/problem+json";
  const body = { ...(problem && JSON.parse(problem)), decision: plain(named(numbers, ["demo"])) };
  return new Response(JSON.stringify(body), {
    status: isAllowed(numbers) ? 200 : 429,
    headers: [["Content-Type", type], ["Cache-Control", "no-store"], ...headers],
  });
}
