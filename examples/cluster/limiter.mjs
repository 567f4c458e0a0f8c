import cluster from "node:cluster";
import { RateLimiter } from "tollgate";

/** In the primary process: forwards the hits that one worker allowed to all others. */
export function relay() {
  cluster.on("message", (sender, message) => {
    if (message.inc === undefined) return;
    for (const worker of Object.values(cluster.workers)) if (worker !== sender) worker.send(message);
  });
}

/** In a worker: decides by its own count and sends allowed hits to the others. Denied hits are free and not sent. */
export class ClusterLimiter {
  #limiter;

  constructor(policy, options) {
    this.#limiter = new RateLimiter({ ...policy, denied: "free" }, options);
    process.on("message", ({ inc }) => inc !== undefined && this.#limiter.inc(...inc));
  }

  hit(key, cost = 1) {
    const decision = this.#limiter.hit(key, cost);
    if (decision.allowed) process.send({ inc: [key, cost] });
    return decision;
  }
}
