import type { TollgateError } from "../errors/error.ts";
import type { BudgetDenied } from "./denied.ts";

/**
 * Returns the response to a denied call, in the form of the errors of OpenAI's and Anthropic's APIs. It tells SDKs not to
 * try again by themselves: the option `wait` does that.
 */
export function deniedResponse({ message, retryAfter, decision, reserved }: BudgetDenied): Response {
  const headers = new Headers({ "Content-Type": "application/json", "x-should-retry": "false" });
  const hasEnd = retryAfter !== Number.POSITIVE_INFINITY;
  if (hasEnd) {
    // Any call that ends may free what it reserved.
    const wait = decision.reason === "reserved" ? Math.min(retryAfter, 1_000) : retryAfter;
    headers.set("Retry-After", String(Math.ceil(wait / 1_000)));
    headers.set("retry-after-ms", String(wait));
  }
  const error = {
    type: "rate_limit_error",
    code: "budget_denied",
    message,
    policies: decision.violated,
    retryAfter: hasEnd ? retryAfter : null,
    reserved,
  };
  return new Response(JSON.stringify({ type: "error", error }), { status: 429, headers });
}

/** Returns the response to a call that cannot be charged: SDKs do not send it again. */
export function invalidResponse({ code, message }: TollgateError): Response {
  const headers = { "Content-Type": "application/json", "x-should-retry": "false" };
  const error = { type: "invalid_request_error", code, message };
  return new Response(JSON.stringify({ type: "error", error }), { status: 400, headers });
}
