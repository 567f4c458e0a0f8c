import { Hono } from "hono";
import { rateLimit } from "tollgate/hono";

export const app = new Hono();

app.use(rateLimit({ policy: { algorithm: "fix_window_per_key", limit: 5, scale: "1m" } }));

app.get("/", (c) => c.text("Hello\n"));
