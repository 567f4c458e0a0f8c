/** The error for an invalid command line. Known by its name, since a part of the command that is loaded has its own class. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The error for a command that failed. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

/** Returns whether an error is one of these two. */
export const isCommandError = (error: unknown): error is CommandError | UsageError =>
  error instanceof Error && (error.name === "UsageError" || error.name === "CommandError");

/** The exit codes of every command. */
export const exit = { ok: 0, failed: 1, usage: 2 } as const;
