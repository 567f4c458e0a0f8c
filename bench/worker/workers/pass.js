/** A Worker that does nothing but pass on. */
export default { fetch: (request, env) => env.UPSTREAM.fetch(request) };

export { RateLimiterObject } from "./peer.js";
