import { createExecutionContext, evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { watchName } from "../../../js/cloudflare/object/ask.ts";
import worker from "../../../js/cloudflare/worker.ts";
import { start, token, workerWith } from "../lib.ts";

/** The time until an isolate reports. */
export const period = 5_000;

/** Clock and timers that only a test moves. */
export const useFakeTime = () =>
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"], now: start });

export const watchObject = () => env.LIMITERS.getByName(watchName);

/** Forgets what the watch object has. */
export async function forgetAll() {
  await runInDurableObject(watchObject(), (_, { storage }) => storage.deleteAll());
  await evictDurableObject(watchObject());
}

/** The namespace, with the messages to the watch object noted; they fail while `broken` is set. */
export function noted() {
  const found = { messages: [] as { report?: unknown }[], broken: false };
  const LIMITERS = {
    idFromName: (name: string) => env.LIMITERS.idFromName(name),
    idFromString: (id: string) => env.LIMITERS.idFromString(id),
    get: (id: DurableObjectId) => env.LIMITERS.get(id),
    getByName: (name: string) => {
      const stub = env.LIMITERS.getByName(name);
      if (name !== watchName) return stub;
      return {
        watch: (question: string) => {
          found.messages.push(JSON.parse(question));
          return found.broken ? Promise.reject(new Error("broken")) : stub.watch(question);
        },
      };
    },
  };
  return { ...found, found, LIMITERS, reports: () => found.messages.filter(({ report }) => report) };
}

/** A view as the tests read it. */
export interface Shown {
  readonly now: number;
  readonly keys: string;
  readonly rules: readonly ({
    readonly rule: string;
    readonly via: string;
    readonly mode: string;
    readonly policies: readonly string[];
  } & Record<"seconds" | "minutes" | "hours", Record<"allowed" | "denied" | "errors", number[]>>)[];
  readonly top: readonly { readonly key: string; readonly object: string; readonly denied: number }[];
  readonly denials: readonly Record<string, unknown>[];
}

export const policies = {
  login: { algorithm: "fix_window", limit: 2, scale: "1h" },
  api: { algorithm: "token_bucket", capacity: 3, refillRate: 1, per: "1h" },
};

/** A Worker that counts its decisions. Its requests end at once; what it sends later is sent when the time has come. */
export function watchingWorker(config: Record<string, unknown> = {}, more: Record<string, unknown> = {}) {
  const { LIMITERS, found, reports } = noted();
  const rules = [{ method: "POST", path: "/login", policies: "login" }];
  const { env: own } = workerWith(
    { upstream: "ORIGIN", watch: true, policies, rules, ...config },
    { LIMITERS, ...more },
  );
  const later: Promise<unknown>[] = [];
  const context = () => {
    const context = createExecutionContext();
    context.waitUntil = (work) => void later.push(work);
    return context;
  };
  const fetch = async (url: string, init?: RequestInit): Promise<Response> =>
    worker.fetch(new Request(`https://example.com${url}`, init), own, context());
  const api = (path: string, init: RequestInit = {}) =>
    fetch(`/_tollgate/v1/${path}`, {
      ...init,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    });
  return {
    env: own,
    context,
    fetch,
    found,
    reports,
    get: api,
    /** What the page shows. */
    view: async () => (await api("watch")).json<Shown>(),
    post: (operation: string, body: unknown) =>
      api(operation, { method: "POST", body: JSON.stringify(body) }),
    /** Ends what the isolate would do later. */
    cutOff() {
      vi.clearAllTimers();
      later.length = 0;
    },
    /** Lets the isolate report. */
    async report() {
      await vi.advanceTimersByTimeAsync(period);
      await Promise.all(later.splice(0));
    },
  };
}
