import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { rateLimit } from "tollgate/hono";

const app = new Hono();

// Counts by the socket's address. Behind a proxy, set key: (c) => ipKey(…) with the header that your proxy overwrites.
app.use(rateLimit({ policy: { name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" } }));
app.get("/", (c) => c.text("Hello\n"));

// A route with two limits: the headers list both.
const login = { name: "login", algorithm: "fix_window_per_key", limit: 2, scale: "1h" };
app.get("/login", rateLimit({ policy: login }), () => new Response("Welcome\n"));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, ({ port }) =>
  console.log(`http://localhost:${port}`),
);
