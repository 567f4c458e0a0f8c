import { misplacedOption } from "./errors.ts";
import type { GuardOptions } from "./types.ts";

/** Returns the options of a route: its own, and those of the guard of all routes where it has none. */
export function overridden<Options extends GuardOptions<never, never, never>>(
  defaults: Options,
  own: Options,
): Options {
  const { limiter } = defaults;
  const hasPolicies = (limiter as { readonly policies?: unknown } | undefined)?.policies !== undefined;
  if (own.policy !== undefined && own.limiter === undefined && hasPolicies)
    throw misplacedOption(
      "policy",
      "beside the limiter of all routes",
      "limiter: a limiter with the route's policy",
    );
  return { ...without(defaults, own.limits === undefined ? ["limits"] : single, own), ...own };
}

/** Options of one limit, which `limits` replaces. */
const single = ["policy", "limiter", "policyFor", "ban", "fallback", "key", "cost"];

/** Returns the defaults without those that an own option replaces. */
function without<Options extends object>(defaults: Options, names: readonly string[], own: object): Options {
  if (!single.concat("limits").some((name) => Object.hasOwn(own, name))) return defaults;
  return Object.fromEntries(Object.entries(defaults).filter(([name]) => !names.includes(name))) as Options;
}
