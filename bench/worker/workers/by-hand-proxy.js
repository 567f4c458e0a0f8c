export { RateLimiterObject } from "./peer.js";
export { default } from "./proxy.js";
