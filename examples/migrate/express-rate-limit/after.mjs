import express from "express";
import { rateLimit } from "tollgate/express";

export const app = express();

app.use(rateLimit({ policy: { algorithm: "fix_window_per_key", limit: 5, scale: "1m" } }));

app.get("/", (_request, response) => response.send("Hello\n"));
