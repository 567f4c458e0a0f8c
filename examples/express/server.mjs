import express from "express";
import { ipKey, problemBody, RateLimiter, rateLimitHeaders } from "tollgate";

const limiter = new RateLimiter({ name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" });

const app = express();

app.use((request, response, next) => {
  // The socket's address; behind a proxy, app.set("trust proxy", …) with the proxy's address makes it the client's.
  const decision = limiter.hit(ipKey(request.ip ?? "0.0.0.0"));
  response.set(rateLimitHeaders(decision, limiter.policies));
  if (decision.allowed) return next();
  response.status(429).type("application/problem+json").send(problemBody(decision, limiter.policies));
});

app.get("/", (_request, response) => response.send("Hello\n"));

const server = app.listen(process.env.PORT ?? 3000, () =>
  console.log(`http://localhost:${server.address().port}`),
);
