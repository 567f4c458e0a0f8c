import rateLimit from "@fastify/rate-limit";
import Fastify from "fastify";

export const app = Fastify();

await app.register(rateLimit, { max: 5, timeWindow: "1 minute" });

app.get("/", async () => "Hello\n");
