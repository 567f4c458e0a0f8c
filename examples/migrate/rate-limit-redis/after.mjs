import express from "express";
import { Redis } from "ioredis";
import { ipKey, problemBody, rateLimitHeaders } from "tollgate";
import { RedisLimiter } from "tollgate/redis";

export const app = express();
export const client = new Redis(process.env.REDIS_URL);

const policy = { algorithm: "fix_window_per_key", limit: 5, scale: "1m" };
const limiter = new RedisLimiter(policy, { client, timeout: "2s", onError: "allow" });

app.use(async (request, response, next) => {
  const decision = await limiter.hit(ipKey(request.ip ?? "0.0.0.0"));
  response.set(rateLimitHeaders(decision, limiter.policies));
  if (decision.allowed) return next();
  response.status(429).type("application/problem+json").send(problemBody(decision, limiter.policies));
});

app.get("/", (_request, response) => response.send("hello"));
