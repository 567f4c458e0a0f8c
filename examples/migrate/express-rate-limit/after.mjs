import express from "express";
import { ipKey, problemBody, RateLimiter, rateLimitHeaders } from "tollgate";

export const app = express();

const limiter = new RateLimiter({ algorithm: "fix_window_per_key", limit: 5, scale: "1m" });

app.use((request, response, next) => {
  const decision = limiter.hit(ipKey(request.ip ?? "0.0.0.0"));
  response.set(rateLimitHeaders(decision, limiter.policies));
  if (decision.allowed) return next();
  response.status(429).type("application/problem+json").send(problemBody(decision, limiter.policies));
});

app.get("/", (_request, response) => response.send("Hello\n"));
