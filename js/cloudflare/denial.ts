import type { Told } from "./isolate.ts";

/** The headers of denials, by the names of what they tell. To set them anew is half the work of making them. */
const prepared = new Map<string, Headers>();

function prepare(names: string): Headers {
  const headers = new Headers({ "Content-Type": "application/problem+json", "Cache-Control": "no-store" });
  if (names !== "") headers.set("Access-Control-Expose-Headers", names);
  prepared.set(names, headers);
  return headers;
}

/** The answer to a hit that was denied. */
export function denial(told: Told["headers"], body: string): Response {
  const names = namesOf(told);
  const headers = prepared.get(names) ?? prepare(names);
  for (const [name, value] of told) headers.set(name, value);
  // The response has a copy of its own.
  return new Response(body, { status: 429, headers });
}

/** The names of headers, as a header lists them. */
export const namesOf = (told: Told["headers"]): string => told.map(([name]) => name).join(", ");
