import cluster from "node:cluster";
import { RateLimiter } from "tollgate";

/** In the primary process: passes on to all the others what one has counted. */
export function relay() {
  cluster.on("message", (sender, message) => {
    if (message.inc === undefined) return;
    for (const worker of Object.values(cluster.workers)) if (worker !== sender) worker.send(message);
  });
}

/** In a worker: decides by what is known here, and tells the others. Denied hits are free, so nobody need hear of them. */
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
