import express from "express";
import { rateLimit } from "tollgate/express";

const app = express();

// Behind a proxy, use app.set("trust proxy", 1) to get the client's address.
app.use(rateLimit({ policy: { name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" } }));

app.get("/", (_request, response) => response.send("Hello\n"));

const server = app.listen(process.env.PORT ?? 3000, () =>
  console.log(`http://localhost:${server.address().port}`),
);
