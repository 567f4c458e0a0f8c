/** Who may read an answer of the gateway's own: pages of these origins, or of all, and whether with credentials. */
export interface Cors {
  readonly origins: readonly string[];
  readonly credentials: boolean;
}

/** Lets a page of another origin read what it is told about its limits. */
export function expose(headers: Headers, names: readonly string[]): void {
  if (names.length > 0) headers.append("Access-Control-Expose-Headers", names.join(", "));
}

/** Lets the page that asked read a denial, if it may: without this it would see a network error. */
export function permit(headers: Headers, request: Request, { origins, credentials }: Cors): void {
  if (origins.includes("*")) {
    headers.set("Access-Control-Allow-Origin", "*");
    return;
  }
  if (origins.length === 0) return;
  headers.append("Vary", "Origin");
  const origin = request.headers.get("Origin");
  if (origin === null || !origins.includes(origin)) return;
  headers.set("Access-Control-Allow-Origin", origin);
  if (credentials) headers.set("Access-Control-Allow-Credentials", "true");
}

/** Answers OPTIONS on the HTTP API: what may be sent there, which browsers ask on behalf of other origins. */
export const preflight = (): Response =>
  new Response(null, {
    status: 204,
    headers: {
      Allow: "POST, OPTIONS",
      "Access-Control-Allow-Methods": "POST",
      "Access-Control-Allow-Headers": "Authorization, Content-Type",
      "Access-Control-Max-Age": "7200",
    },
  });

/** Lets pages of these origins read an answer of the HTTP API. The token is all they bring: no cookies. */
export function admit(response: Response, request: Request, origins: readonly string[]): Response {
  if (origins.length === 0) return response;
  response.headers.append("Vary", "Origin");
  const origin = request.headers.get("Origin");
  if (origin !== null && (origins.includes(origin) || origins.includes("*"))) {
    response.headers.set("Access-Control-Allow-Origin", origin);
    expose(response.headers, ["Retry-After", "WWW-Authenticate"]);
  }
  return response;
}
