import express from "express";
import { rateLimit } from "express-rate-limit";
import { Redis } from "ioredis";
import { RedisStore } from "rate-limit-redis";

export const app = express();
export const client = new Redis(process.env.REDIS_URL);

const store = new RedisStore({ sendCommand: (...args) => client.call(...args) });

app.use(rateLimit({ windowMs: 60_000, limit: 5, standardHeaders: "draft-8", legacyHeaders: false, store }));

app.get("/", (_request, response) => response.send("hello"));
