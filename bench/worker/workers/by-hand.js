export { default } from "./entry.js";
export { RateLimiterObject } from "./peer.js";
