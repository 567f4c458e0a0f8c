import { RemoteLimiter } from "tollgate/client";

const { TOLLGATE_URL: url, TOLLGATE_TOKEN: token } = process.env;
const limiter = new RemoteLimiter({ url, token, policy: "api" });

export async function ask(key) {
  const { allowed, limit, remaining, resetAfter } = await limiter.hit(key);
  return { allowed, limit, remaining, reset: Date.now() + resetAfter };
}
