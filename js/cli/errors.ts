/** The error for an invalid command line. */
export class UsageError extends Error {}

/** The error for a command that failed. */
export class CommandError extends Error {}

/** The exit codes of every command. */
export const exit = { ok: 0, failed: 1, usage: 2 } as const;
