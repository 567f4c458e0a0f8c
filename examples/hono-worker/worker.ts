import { Hono } from "hono";
import { RateLimiterObject, type TollgateEnv } from "tollgate/cloudflare";
import { rateLimit } from "tollgate/hono";

export { RateLimiterObject };

const app = new Hono<{ Bindings: TollgateEnv }>();

const policy = { name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" } as const;
app.use(rateLimit<{ Bindings: TollgateEnv }>({ policy, limiter: (c) => c.env.LIMITERS }));
app.get("/", (c) => c.text("Hello\n"));

export default app;
