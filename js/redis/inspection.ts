import { inspect } from "../../build/redis/tollgate.js";
import { ReadPolicies } from "../policy/policies.ts";
import type { Exception, Policies, Policy } from "../types.ts";
import { instanceOf } from "../wasm/wasm-module.ts";
import { redisModule, run } from "./wasm.ts";

/** A key as an operator sees it; `src/redis_log/inspect.rs` explains the fields. */
export interface Inspection {
  readonly policies: readonly Policy[];
  readonly states: readonly {
    readonly policy: string;
    readonly count: number;
    readonly limit: number;
    readonly used: number;
    readonly endsAt: number;
    readonly open: number;
    readonly bannedFor: number;
    readonly isBan: boolean;
  }[];
  readonly endsAt: number;
  readonly allowed: boolean;
  readonly retryAfter: number | null;
  readonly count: number;
  readonly limit: number;
  readonly remaining: number;
  readonly moreAfter: number;
  readonly binding: number;
  readonly bannedFor: number;
  readonly exception?: readonly [exception: Exception, until: number];
  readonly reservations: number;
  readonly leases: number;
  readonly charged: number;
  readonly line: number;
  readonly last: number;
  readonly hits: number;
  readonly denied: number;
}

/**
 * Returns what the value of a key in Redis says of it at `now`: under the policies of its last operation, unless others are
 * given. Entries after `since` are counted.
 */
export function inspection(value: string, now: number, since: number, policies?: Policies): Inspection {
  instanceOf(redisModule);
  const json = policies === undefined ? undefined : JSON.stringify(ReadPolicies.of(policies).policies);
  return JSON.parse(run(() => inspect(value, now, since, json)));
}
