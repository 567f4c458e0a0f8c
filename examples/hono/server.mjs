import { serve } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono } from "hono";
import { problemBody, RateLimiter, rateLimitHeaders } from "tollgate";

const limiter = new RateLimiter({ name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" });

const app = new Hono();

app.use(async (c, next) => {
  // Behind a proxy this is the proxy's address; take the client's from the header that your proxy overwrites.
  const decision = limiter.hit(getConnInfo(c).remote.address ?? "gone");
  const headers = rateLimitHeaders(decision, limiter.policies);
  if (!decision.allowed) {
    const body = problemBody(decision, limiter.policies);
    return c.body(body, 429, { ...headers, "Content-Type": "application/problem+json" });
  }
  await next();
  for (const [name, value] of Object.entries(headers)) c.header(name, value);
});

app.get("/", (c) => c.text("Hello\n"));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, ({ port }) =>
  console.log(`http://localhost:${port}`),
);
