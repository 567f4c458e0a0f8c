import type { Costs, Key, Policies } from "../types.ts";
import type { Budget, Limits, StoredPause, Timed } from "./limits.ts";
import type { SharedBudget, StepOn } from "./shared.ts";

/** The code of shared budgets. */
type Chunk = typeof import("./shared-chunk.ts");

/** Returns the function by which a shared budget decides. */
export type StepOf = (policies: Policies, chunk: Chunk) => StepOn;

/** A budget that tabs share. Its code is loaded for it: a page without one does not have it. */
export class SharedByTabs implements Budget {
  readonly #clock: () => number;
  readonly #own: Limits;
  #isClosed = false;
  #budget: SharedBudget | undefined;
  /** Resolves when there is a budget, or none, because its code cannot be loaded. */
  readonly #loaded: Promise<void>;

  constructor(
    name: string,
    policies: Policies,
    clock: () => number,
    own: Limits,
    maxHold: number,
    stepOf: StepOf,
    changed: (key?: Key) => void,
  ) {
    this.#clock = clock;
    this.#own = own;
    this.#loaded = load(async (chunk) => {
      await own.loading;
      const step = stepOf(policies, chunk);
      this.#budget = new chunk.SharedBudget(name, policies, clock, own, maxHold, changed, step);
      if (this.#isClosed) this.#budget.close();
    });
  }

  /** Decides a hit, as `SharedBudget` does. Its costs are numbers. */
  async take(key: Key, cost: Costs, deadline: number, isWanted: () => boolean): Promise<Timed | StoredPause> {
    if (!this.#budget) await this.#loaded;
    return (
      this.#budget?.take(key, cost as number, deadline, isWanted) ?? {
        decision: this.#own.hit(key, cost),
        now: this.#clock(),
      }
    );
  }

  /** Gives up the turn of a key for which no call waits here any more. */
  leave(key: Key): void {
    this.#budget?.leave(key);
  }

  /** Pauses a key in every tab until a time. */
  async hold(key: Key, until: number, length: number): Promise<void> {
    if (!this.#budget) await this.#loaded;
    this.#budget?.hold(key, until, length);
  }

  /** Stops listening to other tabs, when no call waits. */
  rest(): void {
    this.#budget?.rest();
  }

  /** Closes the database and the channel. Later calls use a budget of this page alone. */
  close(): void {
    this.#isClosed = true;
    this.#budget?.close();
  }
}

/** Loads the code and makes a budget of it; if that fails, the page has a budget of its own. */
async function load(made: (chunk: Chunk) => Promise<void>): Promise<void> {
  try {
    await made(await import("./shared-chunk.ts"));
  } catch (error) {
    console.warn("tollgate: shared budgets cannot be loaded, so this page has a budget of its own.", error);
  }
}
