import react from "@vitejs/plugin-react";
import { RateLimiter, rateLimitHeaders } from "tollgate";

const limiter = new RateLimiter({ algorithm: "sliding_window", limit: 3, scale: "10s" });

const words = ["burst", "bucket", "budget", "fixed window", "leaky bucket", "sliding window", "token bucket"];

/** A search API with a limit, for the page to call. */
function api(server) {
  server.middlewares.use("/search", (request, response) => {
    const decision = limiter.hit("everybody");
    const query = new URL(request.url, "http://localhost").searchParams.get("q").toLowerCase();
    response.writeHead(decision.allowed ? 200 : 429, {
      "Content-Type": "application/json",
      ...rateLimitHeaders(decision, limiter.policies),
    });
    response.end(JSON.stringify(decision.allowed ? words.filter((word) => word.includes(query)) : []));
  });
}

export default { plugins: [react(), { name: "api", configureServer: api, configurePreviewServer: api }] };
