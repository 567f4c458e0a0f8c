import Fastify from "fastify";
import { rateLimit } from "tollgate/fastify";

export const app = Fastify();

const policy = { algorithm: "fix_window_per_key", limit: 5, scale: "1m" };
app.addHook("onRequest", rateLimit({ policy, headers: "legacy" }));

app.get("/", async () => "Hello\n");
