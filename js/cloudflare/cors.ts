/** Lets a page of another origin read what it is told about its limits. */
export function expose(headers: Headers, names: readonly string[]): void {
  if (names.length > 0) headers.append("Access-Control-Expose-Headers", names.join(", "));
}

/** Lets the page that asked read a denial: without this it would see a network error. */
export function permit(headers: Headers, request: Request): void {
  const origin = request.headers.get("Origin");
  if (origin === null) return;
  headers.set("Access-Control-Allow-Origin", origin);
  headers.set("Access-Control-Allow-Credentials", "true");
  headers.append("Vary", "Origin");
}
