import { Throttle } from "/package.js";

const policy = { algorithm: "fix_window_per_key", limit: 3, scale: "1h" };

/** Tries to take three at once from a budget that the page and its worker share. Returns how many it got. */
export async function take() {
  const throttle = new Throttle(policy, { shared: "with a worker" });
  const taken = [1, 2, 3].map(() =>
    throttle.acquire({ maxWait: 0 }).then(
      () => 1,
      () => 0,
    ),
  );
  return (await Promise.all(taken)).reduce((sum, each) => sum + each);
}
