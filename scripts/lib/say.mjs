import { collected } from "./output.mjs";

const colour = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code) => (text) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);

export const bold = paint(1);
export const dim = paint(2);
export const red = paint(31);
export const green = paint(32);

export function say(line = "") {
  const output = collected();
  if (output) output.write(`${line}\n`);
  else console.log(line);
}

export function seconds(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
}

/** Prints a line every few seconds, until the returned function is called, which returns the time that passed. */
export function ticking(name, latest = () => "") {
  const started = performance.now();
  // Collected output is printed when its suite ends: too late for lines about progress.
  if (collected()) return () => performance.now() - started;
  const timer = setInterval(() => {
    const note = latest();
    say(dim(`      … ${name}: ${seconds(performance.now() - started)}${note && `  ${note}`}`));
  }, 5_000);
  return () => {
    clearInterval(timer);
    return performance.now() - started;
  };
}

/** An error for a person: what failed, and what to do. */
export class Failure extends Error {
  constructor(what, { remedy = "", output = "" } = {}) {
    super(what);
    this.remedy = remedy;
    this.output = output;
  }
}

/** Prints an error and sets a failing exit code. */
export function report(error) {
  if (!(error instanceof Failure)) {
    console.error(error);
  } else {
    if (error.output) console.error(error.output.trimEnd());
    console.error(red(`\nFailed: ${error.message}`));
    if (error.remedy) console.error(`What you can do: ${error.remedy}`);
  }
  // Not after a signal, whose code is set already.
  process.exitCode ||= 1;
}
