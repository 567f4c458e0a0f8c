import type { AllHits, HitOf } from "../all-hits.ts";
import { reserveAll } from "../reserve-all.ts";
import type { RemoteLimiter } from "./remote.ts";

/**
 * Decides over several keys, of one limiter or several, all or nothing: takes each cost if all keys may act now, and none
 * otherwise. All are asked at once. A denial sends a second message, which gives back what the others set aside; what an
 * allowed one took is charged with the next `hitAll` or `reserve` of its key, or after five seconds, and counts until then.
 *
 * A client that crashes in between costs each key at most what it asked for.
 *
 * @example
 * ```ts
 * import { hitAll, RemoteLimiter } from "tollgate/client";
 *
 * const [url, token] = ["https://limits.example.com/_tollgate", process.env.TOLLGATE_TOKEN ?? ""];
 * const users = new RemoteLimiter({ url, token, policy: "api" });
 * const teams = new RemoteLimiter({ url, token, policy: "daily" });
 * const { allowed } = await hitAll([
 *   { limiter: users, key: "user:42" },
 *   { limiter: teams, key: "team:7", cost: 2 },
 * ]);
 * ```
 */
export const hitAll = (hits: readonly HitOf<RemoteLimiter, string>[]): Promise<AllHits> => reserveAll(hits);
