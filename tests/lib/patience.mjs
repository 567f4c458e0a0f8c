// Loaded before a program, this has it wait a minute at least for an answer: a busy machine is not what is tested.

const { timeout } = AbortSignal;
AbortSignal.timeout = (milliseconds) => timeout.call(AbortSignal, Math.max(milliseconds, 60_000));

/** The environment of a program that loads this first, and of those that it starts. */
export const patiently = (env) => ({ ...env, NODE_OPTIONS: `--import=${import.meta.url}` });
