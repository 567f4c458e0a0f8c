/** The origins whose pages may read the gateway's own responses, and whether with credentials. */
export interface Cors {
  readonly origins: readonly string[];
  readonly credentials: boolean;
}

/** Lets pages of other origins read these headers. */
export function expose(headers: Headers, names: readonly string[]): void {
  if (names.length > 0) headers.append("Access-Control-Expose-Headers", names.join(", "));
}

/** Lets the page that sent a request read a denial, if its origin may: otherwise it would see a network error. */
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

/** Returns the response to OPTIONS on the HTTP API, which browsers send as a preflight for pages of other origins. */
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

/** Lets pages of these origins read a response of the HTTP API. They authenticate by the token, without cookies. */
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
