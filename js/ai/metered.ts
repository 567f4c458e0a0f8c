import type { Charge } from "./charge.ts";

/** Reads the chunks of a stream. */
export interface ChunkReader<Chunk> {
  /** Reads a chunk, and returns the one to pass on; `undefined` for none. */
  read(chunk: Chunk): Chunk | undefined;
  /** Returns a chunk that was held back until the end; `undefined` for none. */
  rest?(): Chunk | undefined;
}

/**
 * Returns a stream with the chunks of another, and settles the charge when it ends: finished, broken, cancelled, or aborted.
 * After an abort it passes nothing on, which would not be charged. It reads ahead no chunk.
 */
export function metered<Chunk>(
  stream: ReadableStream<Chunk>,
  charge: Charge,
  chunks: ChunkReader<Chunk>,
  signal: AbortSignal | null | undefined,
): ReadableStream<Chunk> {
  const reader = stream.getReader();
  const settle = (isAborted = signal?.aborted === true) => {
    signal?.removeEventListener("abort", abort);
    return isAborted ? charge.settleAborted() : charge.settleDelivered();
  };
  const abort = () => {
    settle(true);
    // Not every stream obeys the signal. Those that do have failed by now.
    reader.cancel(signal?.reason).catch(() => {});
  };
  if (signal?.aborted) abort();
  else signal?.addEventListener("abort", abort);
  charge.isAwaited = false;

  /** Reads until there is a chunk to pass on; `undefined` at the end. */
  const next = async (): Promise<Chunk | undefined> => {
    for (;;) {
      const { done, value } = await reader.read();
      // A chunk may have been on its way here.
      signal?.throwIfAborted();
      if (done) return undefined;
      const passed = chunks.read(value);
      if (passed !== undefined) return passed;
    }
  };

  return new ReadableStream<Chunk>(
    {
      async pull(controller) {
        charge.isAwaited = true;
        try {
          const chunk = await next();
          if (chunk !== undefined) {
            controller.enqueue(chunk);
            return;
          }
          const rest = chunks.rest?.();
          if (rest !== undefined) controller.enqueue(rest);
          await settle();
          controller.close();
        } catch (error) {
          await settle();
          controller.error(error);
        } finally {
          charge.isAwaited = false;
        }
      },
      async cancel(reason) {
        await Promise.all([settle(true), reader.cancel(reason)]);
      },
    },
    { highWaterMark: 0 },
  );
}
