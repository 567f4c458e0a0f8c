import { type Given, helpOption, type Options } from "./options.ts";

/** A command of `tollgate`. */
export interface Command {
  readonly name: string;
  /** The line of the overview. */
  readonly summary: string;
  /** The arguments, after the name. */
  readonly usage: string;
  readonly options: Options;
  /** Further text of the help. */
  readonly notes?: string;
  /** Runs it. Returns the exit code. */
  run(given: Given): Promise<number>;
}

/** Returns the help of a command. */
export function helpOf({ name, summary, usage, options, notes = "" }: Command): string {
  const rows = Object.entries({ ...options, help: helpOption }).map(([option, { value, short, help }]) => {
    const names = `${short === undefined ? "" : `-${short}, `}--${option}`;
    return [`${names}${value === undefined ? "" : ` ${value}`}`, help] as const;
  });
  const width = Math.max(...rows.map(([names]) => names.length)) + 2;
  const lines = rows.map(
    ([names, help]) => `  ${names.padEnd(width)}${help.replaceAll("\n", `\n${" ".repeat(width + 2)}`)}`,
  );
  const parts = [`tollgate ${name} ${usage}\n\n${summary}.`, `Options:\n${lines.join("\n")}`, notes.trim()];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}
