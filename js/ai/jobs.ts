import type { Charge } from "./charge.ts";
import { pendingJob, takeBody, takeEvent, takeResult } from "./http-response.ts";
import { EventReader } from "./sse.ts";

/** How many jobs are remembered. Older ones are charged as reserved. */
const mostJobs = 10_000;

/** A job at the provider that goes on after its call. */
interface Job {
  readonly charge: Charge;
  /** Whether its usage is in its results. */
  readonly isBatch: boolean;
}

/** The jobs that were begun here: responses in the background, and batches. Each is charged when its result is fetched. */
export class Jobs {
  readonly #jobs = new Map<string, Job>();

  /** Leaves the charge of a call open until its result is fetched. */
  add(id: string, job: Job): void {
    const [oldest] = this.#jobs.keys();
    if (this.#jobs.size >= mostJobs && oldest !== undefined) this.#jobs.delete(oldest);
    this.#jobs.set(id, job);
    job.charge.leave();
  }

  /** Returns the reader of a response that tells of a job; `undefined` for a job of somebody else. */
  reader(
    id: string | undefined,
    path: string,
  ): ((response: Response) => Promise<BodyInit | undefined>) | undefined {
    const job = id === undefined ? undefined : this.#jobs.get(id);
    if (id === undefined || job === undefined) return undefined;
    job.charge.leave();
    return (response) => this.#read(id, job, path, response);
  }

  /** Returns the body to pass on of a response that was read. */
  async #read(
    id: string,
    { charge, isBatch }: Job,
    path: string,
    response: Response,
  ): Promise<BodyInit | undefined> {
    const { delivered } = charge;
    const type = response.headers.get("Content-Type") ?? "";
    const end = async () => {
      this.#jobs.delete(id);
      await charge.settleDelivered();
    };
    if (/\/results\/*$/.test(path)) {
      if (isBatch)
        return response.body?.pipeThrough(lines((line) => takeResult(line, delivered), end)) ?? undefined;
      return undefined;
    }
    if (/\bevent-stream\b/i.test(type)) {
      const events = new EventReader((data) => !takeEvent(data, delivered), delivered.add, false);
      return response.body?.pipeThrough(
        passing(events, async () => {
          if (delivered.isFinal || delivered.hasFailed) await end();
        }),
      );
    }
    if (!/\bjson\b/i.test(type)) return undefined;
    const text = await response.text();
    if (!isBatch && pendingJob(text) === undefined && takeBody(text, delivered, undefined)) await end();
    return text;
  }
}

/** Returns a stream that passes on all bytes, and reads their lines. */
function lines(
  onLine: (line: string) => void,
  onEnd: () => Promise<void>,
): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let rest = "";
  return new TransformStream({
    transform(chunk, controller) {
      const whole = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = whole.pop() ?? "";
      for (const line of whole) onLine(line);
      controller.enqueue(chunk);
    },
    async flush() {
      onLine(rest);
      await onEnd();
    },
  });
}

/** Returns a stream that passes on all bytes, and reads their events. */
const passing = (events: EventReader, onEnd: () => Promise<void>): TransformStream<Uint8Array, Uint8Array> =>
  new TransformStream({
    transform(chunk, controller) {
      events.read(chunk);
      controller.enqueue(chunk);
    },
    async flush() {
      events.rest();
      await onEnd();
    },
  });
