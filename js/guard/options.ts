import { RateLimiter } from "../limiter/limiter.ts";
import type { Costs, Policies } from "../types.ts";
import { after } from "./after.ts";
import { checkCosts } from "./costs.ts";
import { wrongOption } from "./errors.ts";
import { insteadOf } from "./familiar-names.ts";
import type { Awaitable, BanOptions, GuardOptions, LongKeys } from "./types.ts";

/** Validated options, with their defaults. */
export interface ReadGuardOptions<Request, Arguments extends readonly unknown[], Response>
  extends GuardOptions<Request, Arguments, Response> {
  readonly cost: Costs | ((request: Request) => Awaitable<Costs>);
  readonly charge: "all" | "failures" | "successes" | ((response: Response) => Awaitable<Costs>);
  readonly longKeys: LongKeys;
  readonly headers: "standard" | "legacy" | "none";
  readonly timeout: number;
}

const aFunction = "a function";

/** The accepted values of each option: words in quotes, or a function. Empty if it is checked where it is used. */
const accepted: Readonly<Record<string, string>> = {
  policy: "",
  limiter: "",
  key: aFunction,
  longKeys: '"reject" or "hash"',
  cost: "",
  limits: "",
  policyFor: aFunction,
  ban: "",
  skip: `inRanges([…]) or ${aFunction}`,
  charge: `"all", "failures", "successes" or ${aFunction}`,
  headers: '"standard", "legacy" or "none"',
  onDenied: `"deny", "allow" or ${aFunction}`,
  onError: `"allow", "deny", "throw" or ${aFunction}`,
  fallback: "",
  onDecision: aFunction,
  timeout: "",
};

function check(name: string, found: unknown): void {
  const expected = Object.hasOwn(accepted, name) ? accepted[name] : undefined;
  if (expected === undefined)
    throw wrongOption("options", name, insteadOf(name) ?? `one of ${Object.keys(accepted).join(", ")}`);
  const isAccepted =
    expected === "" ||
    found === undefined ||
    expected.includes(typeof found === "function" ? aFunction : JSON.stringify(found));
  if (!isAccepted) throw wrongOption(name, found, expected);
}

/** Validates options that complete those of a guard, as far as that is possible without these. */
export function checkOwnOptions(options: object): void {
  for (const [name, found] of Object.entries(options)) check(name, found);
  const { policy, ban } = options as Pick<GuardOptions<unknown>, "policy" | "ban">;
  if (policy !== undefined) RateLimiter.read(withBan({ policy, ban }).policy ?? policy);
}

/** Reads and validates the options of a guard. Each is read once. */
export function readGuardOptions<Request, Arguments extends readonly unknown[], Response>(
  given: GuardOptions<Request, Arguments, Response>,
): ReadGuardOptions<Request, Arguments, Response> {
  if (typeof given !== "object" || given === null) throw wrongOption("options", given, "an object");
  const options = { ...given };
  for (const [name, found] of Object.entries(options)) check(name, found);
  const { policy, limiter, policyFor, timeout = 2_000 } = options;
  if ((policy ?? limiter ?? policyFor ?? options.limits) === undefined)
    throw wrongOption("policy", undefined, examplePolicy);
  if (typeof timeout !== "number" || !(timeout > 0 && timeout < 2 ** 31))
    throw wrongOption("timeout", timeout, "a number of milliseconds up to 2147483647");
  const { cost = 1, charge = "all", headers = "standard", longKeys = "reject" } = options;
  if (typeof cost !== "function") checkCosts(cost);
  return { ...options, ...withBan(options), cost, charge, headers, longKeys, timeout };
}

/** Returns the policies with the ban as one more of each list. */
function withBan<Request, Arguments extends readonly unknown[], Response>({
  ban,
  policy,
  policyFor,
}: GuardOptions<Request, Arguments, Response>): Pick<
  GuardOptions<Request, Arguments, Response>,
  "policy" | "policyFor"
> {
  if (ban === undefined) return {};
  if (typeof ban !== "object" || ban === null || Array.isArray(ban)) {
    const after = typeof ban === "number" ? ban : 5;
    throw wrongOption("ban", ban, `an object such as { after: ${after}, scale: "10m", for: "1h" }`);
  }
  const added = { algorithm: "ban", ...(ban as BanOptions) } as const;
  const both = (policies: Policies | null | undefined) =>
    policies == null ? undefined : [...[policies].flat(), added];
  return {
    policy: both(policy),
    policyFor: policyFor && ((request) => after(policyFor(request), both)),
  };
}

const examplePolicy = '{ algorithm: "sliding_window", limit: 100, scale: "1m" } or the like';
