/** Returns the response to a request whose object did not respond. */
export const unanswered = (): Response =>
  problem(503, "The rate limiter did not respond", { reason: "error" }, { "Retry-After": "1" });

/** Returns a response of type `application/problem+json`, by RFC 9457. */
export const problem = (
  status: number,
  title: string,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Response =>
  new Response(JSON.stringify({ type: "about:blank", title, status, ...more }), {
    status,
    headers: { "Content-Type": "application/problem+json", "Cache-Control": "no-store", ...headers },
  });
