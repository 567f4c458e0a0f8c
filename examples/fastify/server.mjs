import Fastify from "fastify";
import { rateLimit } from "tollgate/fastify";

// Behind a proxy, use Fastify({ trustProxy: "10.0.0.1" }) with the proxy's address to get the client's address.
const app = Fastify();

const policy = { name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" };
app.register(rateLimit, { policy });

app.get("/", async () => "Hello\n");

await app.listen({ port: Number(process.env.PORT ?? 3000) });
console.log(`http://localhost:${app.server.address().port}`);
