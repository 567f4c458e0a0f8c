import { RateLimiterObject, type TollgateEnv } from "tollgate/cloudflare";

export { RateLimiterObject };

export default {
  async fetch(request, env) {
    const address = request.headers.get("CF-Connecting-IP") ?? "local";
    const policy = { algorithm: "token_bucket", capacity: 2, refillRate: 2, per: "1h" } as const;
    const { allowed } = await env.LIMITERS.getByName(address).hit(policy);
    return allowed ? new Response("Hello\n") : new Response("Too many requests\n", { status: 429 });
  },
} satisfies ExportedHandler<TollgateEnv>;
