import { RateLimiter, rateLimitHeaders } from "tollgate";

const limiter = new RateLimiter({ algorithm: "token_bucket", capacity: 5, refillRate: 5 });

/** An API with a limit, for the page to call. */
function api(server) {
  server.middlewares.use("/api", (_request, response) => {
    const decision = limiter.hit("everybody");
    response.writeHead(decision.allowed ? 200 : 429, rateLimitHeaders(decision, limiter.policies)).end();
  });
}

export default { plugins: [{ name: "api", configureServer: api, configurePreviewServer: api }] };
