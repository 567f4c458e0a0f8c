import { mergeFields } from "./fields.ts";
import type { Verdict } from "./verdict.ts";

/** The common part of Node's responses of HTTP/1 and HTTP/2. */
export interface NodeResponse {
  statusCode: number;
  readonly headersSent: boolean;
  /** Of HTTP/1. */
  readonly destroyed?: boolean;
  /** Of HTTP/2. */
  readonly stream?: { readonly destroyed: boolean };
  getHeader(name: string): unknown;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
  once(event: "finish" | "close", listener: () => void): unknown;
}

/** Writes the headers of a verdict, unless the response has begun. */
export function writeFields(response: NodeResponse, verdict: Verdict): void {
  if (response.headersSent) return;
  mergeFields(verdict.fields, {
    get: (name) => response.getHeader(name),
    set: (name, value) => response.setHeader(name, value),
  });
}

/** Sends the response to a request that does not go on. */
export function deny(response: NodeResponse, { status, body }: Verdict): void {
  response.statusCode = status;
  response.setHeader("Content-Type", "application/problem+json");
  response.setHeader("Cache-Control", "no-store");
  response.end(body);
}

/**
 * Calls `finish` of the verdict when the response has ended: sent whole, or cut short. `sent` returns the response as the
 * framework has it.
 */
export function watch(
  response: NodeResponse,
  { finish }: Verdict,
  sent: () => unknown = () => response,
): void {
  if (finish === undefined) return;
  if (response.destroyed ?? response.stream?.destroyed) {
    finish();
    return;
  }
  response.once("finish", () => finish(response.statusCode < 400, sent));
  response.once("close", () => finish());
}
