import { eachText, TokenCount } from "./text.ts";
import { checkedUsage, laterOf, type ModelUsage, readUsage, sumOf, unsaid } from "./usage.ts";

/** Counts the tokens of a text, as the model does. */
export type CountTokens = (text: string) => number;

/** The tokens to charge for what is unknown. */
export interface Tokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The output of a call so far: text, and the usage as far as the provider has said it. */
export class Delivered {
  readonly #countTokens: CountTokens | undefined;
  /** Whether the call has an output: an embedding has none. */
  readonly #hasOutput: boolean;
  readonly #count = new TokenCount();
  readonly #texts: string[] = [];
  #said = unsaid;
  #uses: Readonly<Record<string, number>>;
  #tier: string | undefined;
  #isFinal = false;
  #isReported = false;
  /** Whether the provider reported an error instead of more output. */
  hasFailed = false;
  /** Whether it is known how often something was used. */
  hasUses = false;
  /** Whether a usage was reported that is none, so that what is known is not all. */
  hasWrong = false;

  constructor(
    countTokens: CountTokens | undefined,
    { hasOutput, uses, tier }: { readonly hasOutput: boolean } & Pick<ModelUsage, "uses" | "tier">,
  ) {
    this.#countTokens = countTokens;
    this.#hasOutput = hasOutput;
    this.#uses = uses;
    this.#tier = tier;
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
    const said = readUsage(usage, this.#hasOutput);
    this.#said = laterOf(this.#said, said);
    this.#isFinal ||= isFinal && (said.outputTokens ?? 0) > 0;
  }

  /** Adds the usage of one of several results, each of which has to say it. */
  addUsage(usage: unknown): void {
    const said = readUsage(usage, this.#hasOutput);
    this.hasWrong ||= said.hasWrong || said.inputTokens === undefined || said.outputTokens === undefined;
    this.#said = sumOf(this.#said, said);
  }

  /** Says how often something was used that is counted by itself, such as an image. */
  use(name: string, count: number): void {
    this.hasUses = true;
    this.#uses = { ...this.#uses, [name]: count };
  }

  /**
   * Takes a usage that the caller reports, instead of the ones before, or beside them.
   * @throws TollgateError if it is none.
   */
  report(usage: unknown, isMore: boolean): void {
    try {
      const said = checkedUsage(usage);
      this.#said = isMore ? sumOf(this.#said, said) : said;
      this.#isFinal = this.#said.outputTokens !== undefined;
      this.#isReported = true;
      this.hasWrong &&= isMore;
    } catch (error) {
      this.hasWrong = true;
      throw error;
    }
  }

  /** Takes what was said as final, since the response has ended as it should. */
  end(): void {
    this.#isFinal = (this.#said.outputTokens ?? 0) > 0;
  }

  /** Whether there was no output, and the provider said no usage. */
  get isEmpty(): boolean {
    const { inputTokens, outputTokens, uses } = this.#said;
    return !inputTokens && !outputTokens && Object.keys(uses).length === 0 && !this.hasText;
  }

  /** Whether the response has ended as it should. */
  get isFinal(): boolean {
    return this.#isFinal;
  }

  /** Whether it is known how much the output was, or what else was used. */
  get isKnown(): boolean {
    const { inputTokens, outputTokens, uses } = this.#said;
    const tokens = this.#hasOutput ? outputTokens : (inputTokens ?? outputTokens);
    return this.hasText || tokens !== undefined || Object.keys(uses).length > 0;
  }

  /** Whether some output has come. */
  get hasText(): boolean {
    return this.#count.tokens > 0 || this.#texts.some((text) => text !== "");
  }

  /**
   * Returns the usage to charge: what was said, and for what was not said the estimate of the input, and the delivered text
   * or the estimate of the output. A provider that says 0 has said nothing, but a caller has.
   */
  usage(estimated: Tokens): ModelUsage {
    const said = this.#said;
    const inputTokens =
      (this.#isReported ? said.inputTokens : said.inputTokens || undefined) ?? estimated.inputTokens;
    const outputTokens = this.#output(estimated.outputTokens);
    const input = shares(inputTokens);
    const output = shares(outputTokens);
    const cachedInputTokens = input(said.cachedInputTokens);
    const cacheWriteTokens = input(said.cacheWriteTokens);
    return {
      inputTokens,
      cachedInputTokens,
      cacheWriteTokens,
      longCacheWriteTokens: Math.min(said.longCacheWriteTokens ?? 0, cacheWriteTokens),
      audioInputTokens: input(said.audioInputTokens),
      imageInputTokens: input(said.imageInputTokens),
      outputTokens,
      audioOutputTokens: output(said.audioOutputTokens),
      imageOutputTokens: output(said.imageOutputTokens),
      uses: { ...this.#uses, ...said.uses },
      tier: said.tier ?? this.#tier,
    };
  }

  #output(estimated: number): number {
    const { outputTokens } = this.#said;
    if (this.#isFinal) return outputTokens ?? 0;
    if (outputTokens === undefined && !this.hasText) return estimated;
    return Math.max(outputTokens ?? 0, this.#tokens());
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

/** Returns a function that takes parts out of a whole: at most what is left. */
function shares(whole: number): (part: number | undefined) => number {
  let left = whole;
  return (part = 0) => {
    const taken = Math.min(part, left);
    left -= taken;
    return taken;
  };
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
