/** The policies of the first limiter without a name, by client and prefix. */
const unnamed = new WeakMap<object, Map<string, string>>();

let isWarned = false;

/** Warns once if two limiters without a name share their keys under other policies: each counts what the other admits. */
export function warnOfSharing(client: object, prefix: string, policies: string): void {
  const byPrefix = unnamed.get(client) ?? new Map<string, string>();
  unnamed.set(client, byPrefix);
  const known = byPrefix.get(prefix);
  if (known === undefined) byPrefix.set(prefix, policies);
  if (known === undefined || known === policies || isWarned) return;
  isWarned = true;
  console.warn(
    'tollgate: two RedisLimiters without a name share the keys of one prefix under other policies; give each a name, such as { name: "login" }; see docs/redis.md',
  );
}
