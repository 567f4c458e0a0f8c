import { ipKey } from "tollgate";
import { RateLimiterObject, type TollgateEnv } from "tollgate/cloudflare";

export { RateLimiterObject };

export default {
  async fetch(request, env) {
    const client = ipKey(request.headers.get("CF-Connecting-IP") ?? "0.0.0.0");
    const policy = { algorithm: "token_bucket", capacity: 2, refillRate: 2, per: "1h" } as const;
    const { allowed } = await env.LIMITERS.getByName(client).hit(policy);
    return allowed ? new Response("Hello\n") : new Response("Too many requests\n", { status: 429 });
  },
} satisfies ExportedHandler<TollgateEnv>;
