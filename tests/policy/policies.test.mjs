// Any JSON value given as a policy to the crate, to this package, to the Durable Object and to the Worker's
// configuration: all accept the same ones, and reject the others with the same code in the same words.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { before, test } from "node:test";
import fc from "fast-check";
import { RateLimiter, rateLimitHeaders, TollgateError } from "tollgate";

const seed = process.env.FAST_CHECK_SEED;
const cases = 6_000;
/** A time that lies in another day, week or month at some offsets from UTC. */
const now = 1_772_323_200_000;

const most = Number.MAX_SAFE_INTEGER;
const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.string({
    unit: fc.constantFrom('"', "\\", "\n", "\u007f", "\u0080", "{found}", "$&", "😀", "！"),
    maxLength: 6,
  }),
  fc.constantFrom("", "é", "x".repeat(64), "x".repeat(65), "😀".repeat(65), `${"a".repeat(300)}"`),
);
const number = fc.oneof(
  fc.constantFrom(
    0,
    -0,
    1,
    -1,
    1.5,
    0.1,
    -0.5,
    1e21,
    1e308,
    -1e308,
    5e-324,
    2 ** 31,
    2 ** 32,
    2 ** 53,
    2 ** 63,
  ),
  fc.constantFrom(most - 1, most, most + 1, -most, 1_000, 1_001),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const fieldNames = fc.constantFrom(
  ...["algorithm", "limit", "scale", "capacity", "refillRate", "leakRate", "per", "name", "unit", "denied"],
  ...[
    "utcOffset",
    "utc_offset",
    "refill_rate",
    "leak_rate",
    "Limit",
    "limits",
    "ttl",
    "__proto__",
    "constructor",
    "toString",
    "0",
    "7",
  ],
);
/** Any JSON value, nested less deep than the Worker's configuration may be. */
const { value: anything } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.oneof(fc.constant(null), fc.boolean(), number, text, fieldNames),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(fc.oneof(text, fieldNames), tie("value")), { maxLength: 4 }).map(withFields),
  ),
}));

/** Returns an object with these fields, also where one is called `__proto__`. */
function withFields(fields) {
  const object = {};
  for (const [name, value] of fields)
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  return object;
}

const amount = fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.constantFrom(1, 1_000, 1_001, most));
const digits = fc.oneof(
  fc.nat().map(String),
  fc.constantFrom("0", "007", "9007199254740991", "9".repeat(30)),
);
const duration = fc.oneof(
  fc.integer({ min: 1, max: 1e9 }),
  fc.constantFrom(
    "250ms",
    "1s",
    "5m",
    "1h",
    "1d",
    "104249991d",
    "104249992d",
    "1w",
    "14892855w",
    "14892856w",
    "1.5h",
    "+1s",
    "١s",
    "1S",
    most,
  ),
  fc
    .tuple(digits, fc.constantFrom("ms", "s", "m", "h", "d", "w", "", "ns", "constructor"))
    .map((parts) => parts.join("")),
);
const unit = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("day", "week", "month") },
  fc.constantFrom("Day", "weeks", "month ", "year", "1day"),
);
const twoDigits = fc.integer({ min: 0, max: 99 }).map((number) => String(number).padStart(2, "0"));
const offset = fc.oneof(
  fc
    .tuple(
      fc.constantFrom("+", "-"),
      fc.integer({ min: 0, max: 15 }).map((hours) => String(hours).padStart(2, "0")),
      fc.oneof(fc.constantFrom("00", "30", "45", "59"), twoDigits),
    )
    .map(([sign, hours, minutes]) => `${sign}${hours}:${minutes}`),
  fc.constantFrom(
    "Z",
    "+14:00",
    "-14:00",
    "+14:01",
    "-00:00",
    "z",
    "+2:00",
    "+0200",
    "02:00",
    "−02:00",
    "+02:00\n",
  ),
);
const name = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'azAZ09-_. "~'), minLength: 1, maxLength: 64 }),
  fc.constantFrom("burst", "a b", "n".repeat(64), "n".repeat(65)),
);
const algorithms = ["fix_window", "fixed_window", "fix_window_per_key", "sliding_window", "sliding_counter"];

/** A policy that is right, or strange in one field or a few. */
const nearlyRight = fc
  .record({
    algorithm: fc.constantFrom(...algorithms, "token_bucket", "leaky_bucket"),
    amounts: fc.tuple(amount, amount),
    duration,
    unit: fc.option(unit, { freq: 2 }),
    offset: fc.option(offset, { freq: 2 }),
    name: fc.option(name),
    counts: fc.option(name),
    denied: fc.option(fc.constantFrom("count", "free", "maybe", "Free")),
    isSnakeCase: fc.boolean(),
    strange: fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      {
        weight: 3,
        arbitrary: fc.array(fc.tuple(fc.oneof(fieldNames, text), anything), { minLength: 1, maxLength: 3 }),
      },
    ),
    missing: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(fieldNames, { maxLength: 2 })),
  })
  .map(
    ({
      algorithm,
      amounts: [first, second],
      name,
      counts,
      denied,
      isSnakeCase,
      strange,
      missing,
      ...times
    }) => {
      const isFixed = ["fix_window", "fixed_window"].includes(algorithm);
      const unit = isFixed ? times.unit : null;
      const duration = unit ?? times.duration;
      const rate = { token_bucket: ["refillRate", "refill_rate"], leaky_bucket: ["leakRate", "leak_rate"] }[
        algorithm
      ];
      const numbers = rate
        ? [
            ["capacity", first],
            [rate[Number(isSnakeCase)], second],
            ["per", duration],
          ]
        : [
            ["limit", first],
            ["scale", duration],
            [isSnakeCase ? "utc_offset" : "utcOffset", unit && times.offset],
          ];
      const fields = [
        ["algorithm", algorithm],
        ...numbers,
        ["name", name],
        ["unit", counts],
        ["denied", denied],
      ];
      const kept = fields.filter(([field, value]) => value !== null && !missing.includes(field));
      return withFields([...kept, ...strange]);
    },
  );

/** Values as JSON carries them, so that -0 and what JSON leaves out are the same for all. */
const policy = fc
  .oneof({ weight: 4, arbitrary: nearlyRight }, anything)
  .map((value) => JSON.stringify(value));

/** Returns what the crate says of each policy. */
function crate(policies) {
  const args = ["run", "--quiet", "-p", "tollgate-policy-errors"];
  const input = policies.map((policy) => `${policy}\n`).join("");
  const { status, stdout, stderr } = spawnSync("cargo", args, {
    input,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  assert.equal(status, 0, stderr);
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

let worker;
before(async () => {
  worker = await import(new URL("../../build/worker/tollgate.js", import.meta.url));
  worker.initSync({ module: readFileSync(new URL("../../build/worker/tollgate_bg.wasm", import.meta.url)) });
});

function inPackage(policy) {
  const value = JSON.parse(policy);
  try {
    const limiter = new RateLimiter([value], { clock: () => now });
    return { headers: Object.values(rateLimitHeaders(limiter.peek("key"), limiter.policies)) };
  } catch (error) {
    assert.ok(error instanceof TollgateError, `${error?.stack}`);
    return { code: error.code, message: error.message };
  }
}

const storage = { kv: { get: () => undefined, put() {}, delete() {} } };

function inObject(policy) {
  const object = new worker.RateLimiterObject({ id: "key", storage }, {});
  try {
    object.count("peek", `[${policy}]`, 1, undefined, false, now);
    return { isAccepted: true };
  } catch (error) {
    return { code: error.code, message: error.message };
  } finally {
    object.free();
  }
}

/** The policy under a name in the configuration; its own, if that is one there. */
function inConfiguration(policy) {
  const value = JSON.parse(policy);
  const own = value?.name;
  const name = typeof own === "string" && /^[\w.-]{1,64}$/.test(own) ? own : "policy";
  const path = `policies.${name}`;
  try {
    new worker.Gateway(`{ "policies": { ${JSON.stringify(name)}: ${policy} } }`).free();
    return { path, isAccepted: true };
  } catch (errors) {
    assert.equal(errors.length, 1, `${errors}`);
    return { path, error: errors[0], hasOtherName: own != null && own !== name };
  }
}

function check(policy, expected) {
  const rejected =
    expected.code === undefined ? undefined : { code: expected.code, message: expected.message };
  assert.deepEqual(inPackage(policy), rejected ?? { headers: expected.headers });
  // A log that is stored is shorter than one in memory.
  const { stored } = expected;
  const ofStored =
    rejected ?? (stored ? { code: stored.code, message: stored.message } : { isAccepted: true });
  assert.deepEqual(inObject(policy), ofStored);
  const { path, error, isAccepted, hasOtherName } = inConfiguration(policy);
  const { field, problem } = stored ?? expected;
  if (problem !== undefined)
    assert.deepEqual(error, [field === "policy" ? path : `${path}.${field}`, problem]);
  else if (hasOtherName)
    assert.deepEqual([error[0], /is not "policy"/.test(error[1])], [`${path}.name`, true]);
  else assert.equal(isAccepted, true, `${error}`);
}

test("any value is the same policy, or the same error, to all that read it", () => {
  const policies = fc.sample(policy, { numRuns: cases, ...(seed && { seed: Number(seed) }) });
  const expected = crate(policies);
  assert.equal(expected.length, policies.length);
  const differences = [];
  const codes = {};
  for (const [at, policy] of policies.entries()) {
    const { code = "accepted" } = expected[at];
    codes[code] = (codes[code] ?? 0) + 1;
    try {
      check(policy, expected[at]);
    } catch (error) {
      differences.push({ policy, expected: expected[at], error: error.message });
    }
  }
  differences.sort((one, other) => one.policy.length - other.policy.length);
  assert.deepEqual(differences.slice(0, 5), [], `${differences.length} of ${policies.length} differ`);
  // The values are strange in every way, and not only strange.
  for (const code of ["accepted", "invalid_policy", "unknown_algorithm", "unknown_field"])
    assert.ok(codes[code] > policies.length / 20, JSON.stringify(codes));
});
