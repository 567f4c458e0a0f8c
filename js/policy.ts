import { inWords, refused, refusedAs, TollgateError } from "./error.ts";
import { isWhole, milliseconds, time, whole } from "./numbers.ts";
import type { Policy } from "./types.ts";

/** The names of the algorithms; `src/policy.rs` has the same in the same order. */
const algorithms = [
  "fix_window",
  "fix_window_per_key",
  "sliding_window",
  "sliding_counter",
  "token_bucket",
  "leaky_bucket",
];
const tokenBucket = 4;

/** A policy that was read. */
export interface ReadPolicy {
  readonly algorithm: string;
  readonly name: string | undefined;
  /** What Rust takes it as: the algorithm's place in the list, limit, rate, scale, and what was said of denied hits. */
  readonly numbers: readonly [
    algorithm: number,
    limit: number,
    rate: number,
    scale: number,
    denied: 0 | 1 | 2,
  ];
}

/** The fields of a policy that were not left out. */
type Fields = Map<string, unknown>;

/** Reads a policy. Every mistake in it is told by its name; what the numbers come to, Rust knows. */
export function readPolicy(policy: Policy): ReadPolicy {
  const fields = fieldsOf(policy);
  const algorithm = algorithms.indexOf(fields.get("algorithm") as string);
  if (algorithm < 0) throw wrong(fields, "algorithm", `one of ${algorithms.join(", ")}`);
  const isBucket = algorithm >= tokenBucket;
  const rate = algorithm === tokenBucket ? "refillRate" : "leakRate";
  const names = isBucket ? (["capacity", "per", rate] as const) : (["limit", "scale"] as const);
  checkNames(fields, names);
  const numbers = [
    algorithm,
    amount(fields, names[0]),
    isBucket ? amount(fields, rate) : 1,
    span(fields, names[1]),
    denied(fields, isBucket),
  ] as const;
  return { algorithm: algorithms[algorithm] as string, name: nameIn(fields), numbers };
}

function fieldsOf(policy: Policy): Fields {
  if (typeof policy !== "object" || policy === null || Array.isArray(policy)) {
    const example = 'an object such as { algorithm: "fix_window", limit: 100, scale: "1m" }';
    throw refused("invalid_policy", "policy", policy, example);
  }
  const fields: Fields = new Map();
  for (const [written, value] of Object.entries(policy)) {
    if (value == null) continue;
    // As wherever policies are written, a rate may have its name in snake_case.
    const name = written.replace(/^(refill|leak)_rate$/, "$1Rate");
    if (fields.has(name)) throw refusedAs("invalid_policy", name, "a second value", "the field once");
    fields.set(name, value);
  }
  return fields;
}

const wrong = (fields: Fields, name: string, accepts: string): TollgateError =>
  refusedAs(
    name === "algorithm" ? "unknown_algorithm" : "invalid_policy",
    name,
    fields.has(name) ? inWords(fields.get(name)) : "leaving it out",
    accepts,
  );

function checkNames(fields: Fields, [limit, scale, ...rate]: readonly string[]): void {
  const known = ["algorithm", limit, ...rate, scale, "name", "denied"];
  for (const name of fields.keys()) {
    if (!known.includes(name))
      throw new TollgateError("unknown_field", `${name}: no such field; known here are ${known.join(", ")}`);
  }
}

function nameIn(fields: Fields): string | undefined {
  const name = fields.get("name");
  if (name !== undefined && !(typeof name === "string" && /^[ -~]{1,64}$/.test(name)))
    throw wrong(fields, "name", "1 to 64 printable ASCII characters");
  return name;
}

function amount(fields: Fields, name: string): number {
  const number = fields.get(name);
  if (!isWhole(number, 1)) throw wrong(fields, name, whole(1));
  return number;
}

/** A length of time. A bucket's `per` is one second unless it says otherwise. */
function span(fields: Fields, name: string): number {
  const found = milliseconds(fields.get(name) ?? (name === "per" ? 1_000 : undefined));
  if (found === undefined) throw wrong(fields, name, time);
  return found;
}

function denied(fields: Fields, isBucket: boolean): 0 | 1 | 2 {
  const choice = ["", "count", "free"].indexOf((fields.get("denied") ?? "") as string);
  if (choice < 0) throw wrong(fields, "denied", '"count" or "free"');
  if (isBucket && choice === 1)
    throw wrong(fields, "denied", '"free", since a bucket never counts what it denies');
  return choice as 0 | 1 | 2;
}
