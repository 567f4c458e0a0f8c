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
  return { ...defaults, ...own };
}
