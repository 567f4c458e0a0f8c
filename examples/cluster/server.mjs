import cluster from "node:cluster";
import { createServer } from "node:http";
import { ClusterLimiter, relay } from "./limiter.mjs";

if (cluster.isPrimary) {
  relay();
  for (let count = 0; count < 4; count += 1) cluster.fork();
  let starting = 4;
  cluster.on("listening", (_worker, { port }) => {
    starting -= 1;
    if (starting === 0) console.log(`http://localhost:${port}`);
  });
} else {
  // A window that starts at the same time for all, so that all processes count in the same one.
  const limiter = new ClusterLimiter({ algorithm: "fix_window", limit: 10, scale: "1d" });
  createServer((_request, response) => {
    const { allowed } = limiter.hit("everybody");
    response
      .writeHead(allowed ? 200 : 429)
      .end(allowed ? `Hello from ${process.pid}\n` : "Too many requests\n");
  }).listen(process.env.PORT ?? 3000);
}
