/** How long a key is asked before the others after it denied, in milliseconds: longer than a denial is remembered. */
const lately = 5_000;

/** How many keys are known at most. */
const most = 10_000;

/** The denials of a key. */
interface Denials {
  readonly time: number;
  /** How many there were since the key last allowed a hit. */
  readonly inARow: number;
}

/**
 * The keys that denied lately. One of them is asked before the other keys of its rule, so that a flood of denied clients does
 * not keep the keys that it shares with others charged until its hits are undone.
 */
export class DeniedLately {
  /** In order of their times. */
  readonly #denials = new Map<string, Denials>();

  /** Notes what a key decided. */
  note(key: string, isDenied: boolean, now: number): void {
    const known = this.#denials.get(key);
    if (!isDenied) {
      if (known !== undefined) this.#denials.set(key, { ...known, inARow: 0 });
      return;
    }
    this.#denials.delete(key);
    if (this.#denials.size >= most) this.#denials.delete(this.#denials.keys().next().value as string);
    this.#denials.set(key, { time: now, inARow: (known?.inARow ?? 0) + 1 });
  }

  /** Returns the position of the key that denied most in a row; -1 if none denied lately. */
  worst(keys: readonly string[], now: number): number {
    let [worst, inARow] = [-1, -1];
    for (const [position, key] of keys.entries()) {
      const known = this.#denials.get(key);
      const isLate = known !== undefined && Math.abs(now - known.time) < lately;
      if (isLate && known.inARow > inARow) [worst, inARow] = [position, known.inARow];
    }
    return worst;
  }
}
