export { RateLimiterObject } from "tollgate/cloudflare";
export { default } from "./entry.js";
