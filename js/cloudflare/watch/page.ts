import { problem } from "../problem.ts";

/** The page and its headers, made at the first request for it. */
let prepared: Promise<{ readonly html: string; readonly headers: Record<string, string> }> | undefined;

/** Responds with the live page. It has no data: its script asks for the token, and the API for everything else. */
export async function page({ method }: Request): Promise<Response> {
  if (method !== "GET" && method !== "HEAD") return problem(405, "Use GET", {}, { Allow: "GET, HEAD" });
  prepared ??= prepare();
  const { html, headers } = await prepared;
  return new Response(method === "HEAD" ? null : html, { headers });
}

async function prepare() {
  // A text beside the script: nothing reads it before somebody opens the page.
  const { default: html } = await import("../../../build/watch/page.html");
  const [script, style] = await Promise.all(["script", "style"].map((name) => hashOf(html, name)));
  const policy = [
    "default-src 'none'",
    `script-src ${script}`,
    `style-src ${style}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  return {
    html,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": policy.join("; "),
      "Cache-Control": "no-store",
      "Cross-Origin-Opener-Policy": "same-origin",
      "Referrer-Policy": "no-referrer",
      "X-Content-Type-Options": "nosniff",
      "X-Robots-Tag": "noindex",
    },
  };
}

/** Returns the hash of the one inline element of that name, by which the policy allows it. */
async function hashOf(html: string, name: string): Promise<string> {
  const [, text] = html.match(new RegExp(`<${name}[^>]*>([\\s\\S]*?)</${name}>`)) ?? [];
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`;
}
