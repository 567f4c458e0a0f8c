/** Hits of one key that follow each other with the same result. */
export interface Chapter {
  readonly allowed: boolean;
  readonly hits: number;
  /** The times of the first and the last of them, in milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
  /** The least that remained after one of them. */
  readonly remaining: number;
  /** The longest wait after one of them, in milliseconds; `Infinity` for never. */
  readonly longestWait: number;
}

/** The story of one key: its hits in their order, with those of the same result together. */
export interface StorySummary {
  /** The chapters that are kept: the first ones. */
  readonly chapters: readonly Chapter[];
  /** How many follow. */
  readonly more: number;
}

/** The most chapters of a story. */
const mostChapters = 1_000;

/** Collects the story of one key. */
export class Story {
  readonly #chapters: { -readonly [Name in keyof Chapter]: Chapter[Name] }[] = [];
  #isAllowed: boolean | undefined;
  #all = 0;

  add(time: number, allowed: boolean, remaining: number, wait: number): void {
    if (allowed !== this.#isAllowed) this.#begin(time, allowed, remaining);
    if (this.#all > mostChapters) return;
    const chapter = this.#chapters.at(-1);
    if (chapter === undefined) return;
    chapter.hits += 1;
    chapter.to = time;
    chapter.remaining = Math.min(chapter.remaining, remaining);
    chapter.longestWait = Math.max(chapter.longestWait, wait);
  }

  summary(): StorySummary {
    return { chapters: this.#chapters, more: Math.max(0, this.#all - mostChapters) };
  }

  #begin(time: number, allowed: boolean, remaining: number): void {
    this.#isAllowed = allowed;
    this.#all += 1;
    if (this.#all <= mostChapters)
      this.#chapters.push({ allowed, hits: 0, from: time, to: time, remaining, longestWait: 0 });
  }
}
