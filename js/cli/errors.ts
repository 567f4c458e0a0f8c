/** A command line that makes no sense. */
export class UsageError extends Error {}

/** A command that could not be done. */
export class CommandError extends Error {}

/** The exit codes of every command. */
export const exit = { ok: 0, failed: 1, usage: 2 } as const;
