/** Codes of connections that break after a request has been sent: Node's, and those of its `fetch`. */
const codes: readonly unknown[] = ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "UND_ERR_HEADERS_TIMEOUT"];

/** How deep the cause of an error is looked for: SDKs wrap that of `fetch`. */
const deepest = 5;

/** Returns whether a call failed after it had been sent, so that the provider may have done it. */
export function wasSent(error: unknown): boolean {
  let cause = error;
  for (let depth = 0; depth < deepest && typeof cause === "object" && cause !== null; depth += 1) {
    const { code, cause: next } = cause as { readonly code?: unknown; readonly cause?: unknown };
    if (codes.includes(code)) return true;
    cause = next;
  }
  return false;
}
