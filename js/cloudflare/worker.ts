export { default, RateLimiterObject, Tollgate } from "./index.ts";
