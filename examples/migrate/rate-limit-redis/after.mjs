import express from "express";
import { Redis } from "ioredis";
import { rateLimit } from "tollgate/express";
import { RedisLimiter } from "tollgate/redis";

export const app = express();
export const client = new Redis(process.env.REDIS_URL);

const policy = { algorithm: "fix_window_per_key", limit: 5, scale: "1m" };
const limiter = new RedisLimiter(policy, { client, timeout: "2s" });

app.use(rateLimit({ limiter, onError: "throw" }));

app.get("/", (_request, response) => response.send("hello"));
