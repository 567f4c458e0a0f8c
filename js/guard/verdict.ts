import { problemBody, rateLimitHeaders } from "../http/headers.ts";
import type { Decision } from "../types.ts";
import type { Source } from "./source.ts";
import { warnOnce } from "./warnings.ts";

/** The headers of a response, by their names. */
export type Fields = Readonly<Record<string, string>>;

/** The decision of a guard about a request, with the response. */
export interface Verdict {
  /** Whether the request goes on. */
  readonly passes: boolean;
  /** The decision; undefined if the request was skipped or the limiter failed. */
  readonly decision: Decision | undefined;
  /** The headers of the response, whatever it is. */
  readonly fields: Fields;
  /** Status and body of the response to a request that does not go on. */
  readonly status: 400 | 429 | 503;
  readonly body: string;
  /**
   * To be called when the response has ended, with whether it was a success and a function that returns it; without
   * arguments if it was cut short. Undefined if the charge does not depend on it. Returns a promise if the limiter is
   * asynchronous.
   */
  readonly finish: ((isSuccess?: boolean, sent?: () => unknown) => unknown) | undefined;
}

/** No headers. */
export const none: Fields = {};
/** That of a request that goes on without a decision. */
export const passed: Verdict = {
  passes: true,
  decision: undefined,
  fields: none,
  status: 429,
  body: "",
  finish: undefined,
};
/** That of a request without a decision that does not go on. */
export const unanswered: Verdict = {
  ...passed,
  passes: false,
  fields: { "Retry-After": "1" },
  status: 503,
  body: JSON.stringify({
    type: "about:blank",
    title: "The rate limiter did not respond",
    status: 503,
    reason: "error",
  }),
};

/** That of a request whose key no limiter takes. */
export const invalidKey: Verdict = {
  ...passed,
  passes: false,
  status: 400,
  body: JSON.stringify({
    type: "about:blank",
    title: "The request has an invalid key for its rate limit",
    status: 400,
  }),
};

/** Returns the body of a denial. */
export const bodyOf = (decision: Decision, source: Source | undefined): string =>
  (source && written(() => problemBody(decision, source.policies))) ??
  JSON.stringify({ type: "about:blank", title: "Too many requests", status: 429 });

/** Returns the result of `write`; undefined if it throws because a limiter elsewhere has other policies. */
function written<Text>(write: () => Text): Text | undefined {
  try {
    return write();
  } catch (error) {
    warnOnce(
      "policy",
      `the limiter decides by other policies than those given, so there are no headers: ${error}`,
    );
    return undefined;
  }
}

/** Returns the headers of a decision. */
export function fieldsOf(
  decision: Decision,
  { policies, isInexact }: Source,
  headers: "standard" | "legacy" | "none",
): Fields {
  if (headers === "none") return none;
  const all = written(() => rateLimitHeaders(decision, policies, { legacy: headers === "legacy" })) ?? none;
  if (!isInexact || !decision.allowed) return all;
  return Object.fromEntries(Object.entries(all).filter(([name]) => /-(Policy|Limit)$/.test(name)));
}
