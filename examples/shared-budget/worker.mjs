export { default, RateLimiterObject, Tollgate } from "tollgate/cloudflare";
