import { createServer } from "node:http";
import { ipKey, problemBody, RateLimiter, rateLimitHeaders } from "tollgate";

const limiter = new RateLimiter({ name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" });

const server = createServer((request, response) => {
  // Behind a proxy this is the proxy's address; take the client's from the header that your proxy overwrites.
  const decision = limiter.hit(ipKey(request.socket.remoteAddress ?? "0.0.0.0"));
  response.setHeaders(new Headers(rateLimitHeaders(decision, limiter.policies)));
  if (decision.allowed) {
    response.end("Hello\n");
  } else {
    response.writeHead(429, { "Content-Type": "application/problem+json" });
    response.end(problemBody(decision, limiter.policies));
  }
});

server.listen(process.env.PORT ?? 3000, () => console.log(`http://localhost:${server.address().port}`));
