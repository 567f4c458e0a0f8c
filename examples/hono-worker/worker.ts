import { Hono } from "hono";
import { RateLimiterObject, type TollgateEnv } from "tollgate/cloudflare";
import { rateLimit } from "tollgate/hono";

export { RateLimiterObject };

type App = { Bindings: TollgateEnv };

const perIp = { name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" } as const;
const login = {
  name: "login",
  algorithm: "fix_window_per_key",
  limit: 3,
  scale: "1h",
  denied: "free",
} as const;

const app = new Hono<App>();

app.get("/", rateLimit<App>({ policy: perIp, limiter: (c) => c.env.LIMITERS }), (c) => c.text("Hello\n"));

// Only failures are charged: a success costs nothing, and no burst gets more attempts than the limit.
app.post(
  "/login",
  rateLimit<App>({ policy: login, limiter: (c) => c.env.LIMITERS, charge: "failures" }),
  (c) => (c.req.header("Authorization") === "Bearer right" ? c.text("Welcome\n") : c.text("Wrong\n", 401)),
);

export default app;
