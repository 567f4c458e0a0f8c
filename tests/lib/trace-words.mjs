/** The answer in the words of the trace. */
export function inWordsOf(expect, answer) {
  if ("value" in expect) return { value: answer };
  const { allowed, count, retryAfter } = answer;
  if (allowed) return retryAfter === 0 ? { allow: count } : { allow: count, retryAfter };
  if (retryAfter === Number.POSITIVE_INFINITY) return { deny: "never" };
  return { deny: expect.deny === "any" && retryAfter > 0 ? "any" : retryAfter };
}
