// Makes and disposes of many limiters, and prints how often one is unregistered.
const { RateLimiter } = await import("tollgate");
const order = [];
const { unregister } = FinalizationRegistry.prototype;
FinalizationRegistry.prototype.unregister = function (token) {
  order.push("unregister");
  return unregister.call(this, token);
};
const policy = { algorithm: "fix_window", limit: 9, scale: "1h" };
const one = new RateLimiter(policy);
one[Symbol.dispose]();
one[Symbol.dispose]();
const times = order.length;
// Each takes the place of the last: a table that is searched, or handles that are never free, would grow.
for (let at = 0; at < 50_000; at++) {
  const limiter = new RateLimiter(policy);
  limiter.hit("a");
  limiter[Symbol.dispose]();
}
const alive = Array.from({ length: 50_000 }, () => new RateLimiter(policy));
for (const limiter of alive) limiter.hit("a");
for (const limiter of alive.reverse()) limiter[Symbol.dispose]();
const last = new RateLimiter(policy);
console.log(JSON.stringify({ times, count: last.hit("a").count }));
