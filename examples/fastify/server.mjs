import Fastify from "fastify";
import { ipKey, problemBody, RateLimiter, rateLimitHeaders } from "tollgate";

const limiter = new RateLimiter({ name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" });

const app = Fastify();

app.addHook("onRequest", async (request, reply) => {
  // The socket's address; behind a proxy, Fastify({ trustProxy: … }) with the proxy's address makes it the client's.
  const decision = limiter.hit(ipKey(request.ip ?? "0.0.0.0"));
  reply.headers(rateLimitHeaders(decision, limiter.policies));
  if (!decision.allowed)
    return reply.code(429).type("application/problem+json").send(problemBody(decision, limiter.policies));
});

app.get("/", async () => "Hello\n");

await app.listen({ port: Number(process.env.PORT ?? 3000) });
console.log(`http://localhost:${app.server.address().port}`);
