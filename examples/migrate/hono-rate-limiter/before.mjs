import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";

export const app = new Hono();

app.use(
  rateLimiter({
    windowMs: 60_000,
    limit: 5,
    standardHeaders: "draft-7",
    keyGenerator: (c) => getConnInfo(c).remote.address,
  }),
);

app.get("/", (c) => c.text("Hello\n"));
