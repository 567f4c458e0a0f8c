import type { Use } from "./prices.ts";
import { eachText, TokenCount } from "./text.ts";
import { readUsage, type SaidUsage } from "./usage.ts";

/** Counts the tokens of a text, as the model does. */
export type CountTokens = (text: string) => number;

const unsaid: SaidUsage = {
  input: undefined,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: undefined,
};

/** The output of a call so far: text, and the usage as far as the provider has said it. */
export class Delivered {
  readonly #countTokens: CountTokens | undefined;
  readonly #count = new TokenCount();
  readonly #texts: string[] = [];
  #said = unsaid;
  #isFinal = false;
  /** Whether the provider reported an error instead of more output. */
  hasFailed = false;

  constructor(countTokens: CountTokens | undefined) {
    this.#countTokens = countTokens;
  }

  /** Adds a piece of output. */
  readonly add = (text: string): void => {
    if (this.#countTokens === undefined) this.#count.add(text);
    else this.#texts.push(text);
  };

  /** Adds the texts of a part of a message: the difference to the last, as one piece. */
  addTexts(part: unknown): void {
    let piece = "";
    eachText(part, (text) => {
      piece += text;
    });
    this.add(piece);
  }

  /** Takes a usage that the provider says. Once it is final, the delivered text no longer matters. */
  say(usage: unknown, isFinal: boolean): void {
    if (typeof usage !== "object" || usage === null) return;
    const said = readUsage(usage);
    this.#said = {
      input: larger(said.input, this.#said.input),
      cachedInput: said.cachedInput ?? this.#said.cachedInput,
      cacheWrite: said.cacheWrite ?? this.#said.cacheWrite,
      output: larger(said.output, this.#said.output),
    };
    this.#isFinal ||= isFinal && (said.output ?? 0) > 0;
  }

  /** Takes what was said as final, since the response has ended as it should. */
  end(): void {
    this.#isFinal = (this.#said.output ?? 0) > 0;
  }

  /** Whether there was no output, and the provider said no usage. */
  get isEmpty(): boolean {
    return this.#said === unsaid && this.#count.tokens === 0 && this.#texts.length === 0;
  }

  /**
   * Returns the use to charge: the usage that was said, and for what was not said the estimate of the input and the
   * delivered text. A provider that says 0 has said nothing.
   */
  use(estimatedInput: number): Use {
    const said = this.#said;
    const input = said.input || estimatedInput;
    const cachedInput = Math.min(said.cachedInput ?? 0, input);
    const cacheWrite = Math.min(said.cacheWrite ?? 0, input - cachedInput);
    return { input, cachedInput, cacheWrite, output: this.#output() };
  }

  #output(): number {
    const { output = 0 } = this.#said;
    return this.#isFinal ? output : Math.max(output, this.#tokens());
  }

  #tokens(): number {
    if (this.#countTokens === undefined) return this.#count.tokens;
    const text = this.#texts.join("");
    try {
      return text === "" ? 0 : countedBy(this.#countTokens, text);
    } catch {
      // The call has ended; it must not fail for its charge.
      return lengthOf(text);
    }
  }
}

/** Returns the tokens of a text by a function of the caller, whose result may be no count. */
export function countedBy(countTokens: CountTokens, text: string): number {
  const tokens = Math.ceil(countTokens(text));
  return Number.isSafeInteger(tokens) && tokens >= 0 ? tokens : lengthOf(text);
}

function lengthOf(text: string): number {
  const count = new TokenCount();
  count.add(text);
  return count.tokens;
}

/** Returns the larger of two counts: what was said once is not taken back. */
const larger = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
