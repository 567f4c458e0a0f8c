import type { TollgateEnv } from "./env.ts";
import type { Isolate } from "./gateway/isolate.ts";
import { log } from "./log.ts";
import { askWatch, idIn, Unanswered } from "./object/ask.ts";
import type { Collector } from "./watch/collector.ts";
import type { Report } from "./watch/report.ts";

/** Returns what counts the decisions of an isolate with `watch = true`, loaded at its first request. */
export async function collectorOf(isolate: Isolate): Promise<Collector> {
  const { json } = isolate;
  const { Collector } = await import("./watch/watch-chunk.ts");
  isolate.collector ??= new Collector({
    json,
    logged: (object, env) => isolate.logged(object, env),
    idIn: (env, object) => idIn(env, isolate, object),
    namesOf: ({ set }) => isolate.setAt(set).names,
    send: (report, env) => send(report, env, isolate),
  });
  return isolate.collector;
}

/** Sends a report. One that fails is lost, and logged: it must not fail a request. */
async function send(report: Report, env: TollgateEnv, isolate: Isolate): Promise<void> {
  try {
    await askWatch(env, isolate, JSON.stringify({ report }));
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    log({ event: "error", via: "watch", ...error.logFields() });
  }
}
