import { RateLimiterObject } from "tollgate/cloudflare";

export { RateLimiterObject };

const bucket = (name) => ({
  name,
  algorithm: "token_bucket",
  capacity: 1_000_000_000,
  refillRate: 1,
  per: 3_600_000,
});
const rules = ["a", "b", "c", "d"].map((name) => [bucket(name)]);
const eight = Array.from({ length: 8 }, (_, number) => bucket(`bucket${number}`));
let hits = 0;

/** Hits one object: by one rule, by four rules in turn, or under eight policies, beside no reservations or a hundred. */
const kinds = {
  "one rule": (object) => object.hit(rules[0]),
  "four rules in turn": (object) => object.hit(rules[hits++ % rules.length]),
  "eight buckets": (object) => object.hit(eight),
  "eight buckets, 100 open": async (object) => {
    if (hits++ === 0)
      for (let count = 0; count < 100; count++) await object.reserve(eight, 1, { ttl: 86_400_000 });
    return object.hit(eight);
  },
};

export default {
  async fetch(request, env) {
    const key = request.headers.get("CF-Connecting-IP");
    const { allowed } = await kinds[env.TOLLGATE.kind](env.LIMITERS.getByName(key));
    return new Response("hello\n", { status: allowed ? 200 : 429 });
  },
};
