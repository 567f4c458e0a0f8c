import { mergeFields } from "./fields.ts";
import type { Fields, Verdict } from "./verdict.ts";

/** Returns the response with more headers: itself, or a copy if its headers are immutable. */
export function withFields(response: Response, fields: Fields): Response {
  try {
    merge(response, fields);
    return response;
  } catch {
    return copyWith(response, fields);
  }
}

/** Returns a copy with more headers; the response itself if it cannot be copied, such as that to an upgrade. */
function copyWith(response: Response, fields: Fields): Response {
  try {
    const copy = new Response(response.body, response);
    merge(copy, fields);
    return copy;
  } catch {
    return response;
  }
}

const merge = ({ headers }: Response, fields: Fields) =>
  mergeFields(fields, {
    get: (name) => headers.get(name),
    set: (name, value) => headers.set(name, value),
  });

/** The headers of a denial, beside those of the limit. */
export const denialFields = {
  "Content-Type": "application/problem+json",
  "Cache-Control": "no-store",
} as const;

/** Returns the response to a request that does not go on. */
export const denial = ({ status, body, fields }: Verdict): Response =>
  new Response(body, { status, headers: { ...denialFields, ...fields } });

/** Returns the response to a request whose handler threw. */
export const failure = (status = 500): Response => new Response(null, { status });
