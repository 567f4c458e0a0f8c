export { type ErrorCode, TollgateError } from "../error.ts";
export type { Decision } from "../types.ts";
export { RemoteLimiter, type RemoteOptions } from "./remote.ts";
