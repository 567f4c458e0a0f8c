import { serve } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono } from "hono";
import { ipKey, problemBody, RateLimiter, rateLimitHeaders } from "tollgate";

const perIp = new RateLimiter({ name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" });
const logins = new RateLimiter({ name: "login", algorithm: "fix_window_per_key", limit: 2, scale: "1h" });

// Behind a proxy this is the proxy's address; take the client's from the header that your proxy overwrites.
const clientOf = (c) => ipKey(getConnInfo(c).remote.address ?? "0.0.0.0");

/** Middleware that asks a limiter. On a route with several, the headers list each of them. */
const limited = (limiter, keyOf) => async (c, next) => {
  const decision = limiter.hit(keyOf(c));
  // Before `next`, so that errors and every kind of response have them; appended, so that none replaces another's.
  for (const [name, value] of Object.entries(rateLimitHeaders(decision, limiter.policies)))
    c.res.headers.append(name, value);
  if (decision.allowed) return next();
  const body = problemBody(decision, limiter.policies);
  return c.body(body, 429, { "Content-Type": "application/problem+json" });
};

const app = new Hono();

app.use(limited(perIp, clientOf));
app.get("/", (c) => c.text("Hello\n"));
app.get("/login", limited(logins, clientOf), () => new Response("Welcome\n"));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, ({ port }) =>
  console.log(`http://localhost:${port}`),
);
