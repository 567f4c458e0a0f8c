import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import type { TollgateEnv } from "../../js/cloudflare/env.ts";
import worker from "../../js/cloudflare/worker.ts";

/** Far ahead of the real clock, by which workerd rings alarms: none rings before a test says so. */
export const start = Date.UTC(2100, 0, 1);

export const token = "correct horse battery staple".replaceAll(" ", "-");

/** A Worker with a configuration of its own, and an upstream that says what reached it. */
export function workerWith(config: Record<string, unknown>, more: Record<string, unknown> = {}) {
  const reached: Request[] = [];
  const ORIGIN = {
    fetch: (request: Request) => {
      reached.push(request);
      return new Response(`origin: ${new URL(request.url).pathname}`, { headers: { "X-Origin": "yes" } });
    },
  };
  // A machine that is busy with other things is not what is tested.
  const TOLLGATE = { timeout: "1m", ...config };
  const own = { ...env, ORIGIN, TOLLGATE, TOLLGATE_TOKEN: token, ...more } as unknown as TollgateEnv;
  const fetch = async (url: string, init?: RequestInit): Promise<Response> => {
    const context = createExecutionContext();
    const request = new Request(`https://example.com${url}`, { redirect: "manual", ...init });
    const response = await worker.fetch(request, own, context);
    await waitOnExecutionContext(context);
    return response;
  };
  return { fetch, reached, env: own };
}

/** What has been logged, line by line. */
export function logged() {
  const spy = vi.spyOn(console, "log").mockImplementation(() => {});
  return {
    lines: (event: string) =>
      spy.mock.calls.map(([line]) => JSON.parse(line)).filter((line) => line.event === event),
    text: () => spy.mock.calls.flat().join("\n"),
  };
}

let addresses = 0;

/** The headers of a client that no other test has. */
export function someone(): Record<string, string> {
  addresses += 1;
  return { "CF-Connecting-IP": `198.51.${addresses >> 8}.${addresses & 255}` };
}

export async function statuses(times: number, once: () => Promise<Response>): Promise<number[]> {
  const all: number[] = [];
  for (let count = 0; count < times; count += 1) all.push((await once()).status);
  return all;
}

export { seeded } from "../lib/random.mjs";
