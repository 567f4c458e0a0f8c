import Fastify from "fastify";
import { rateLimit } from "tollgate/fastify";

export const app = Fastify();

const policy = { algorithm: "fix_window_per_key", limit: 5, scale: "1m" };
await app.register(rateLimit, { policy, headers: "legacy" });

app.get("/", async () => "Hello\n");
