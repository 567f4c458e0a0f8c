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

/** Returns whether an error is that of a stack that is used up, as by a file whose tables are nested thousands deep. */
export const isTooDeep = (error: unknown): boolean =>
  error instanceof RangeError && error.message.includes("call stack");

export const tooDeep = "it is nested too deeply";

/** Returns whether an error is that of code that has met another value than it expects. */
const isUnexpected = (error: unknown): boolean =>
  error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;

/** Does work with the replies of a place. A reply of another form than a place has is an error of one line. */
export async function withReplies<Result>(place: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!isUnexpected(error)) throw error;
    throw new CommandError(`${place} replied something that cannot be read: ${(error as Error).message}`);
  }
}

/** The exit codes of every command. */
export const exit = { ok: 0, failed: 1, usage: 2 } as const;
