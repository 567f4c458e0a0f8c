import worker from "../../../js/cloudflare/worker.ts";

export { RateLimiterObject } from "../../../js/cloudflare/index.ts";

/** Objects that allow everything at once: what is tested is whether they are asked. */
const LIMITERS = { getByName: () => ({ count: async () => "1 1 1000 999 0 1000 0 0 1000" }) };

/** The Worker as it would be deployed, but for its objects. */
export default {
  fetch: (request, env, context) => worker.fetch(request, { ...env, LIMITERS }, context),
};
