import type { ThrottleOptions } from "./basic-throttle.ts";
import type { Limits } from "./limits.ts";
import type { Line } from "./line.ts";
import { changedPlaces, type QueueState } from "./places.ts";

/** The place of the last call in a line, and the time of its turn, if that is known. */
interface LastPlace {
  readonly position: number;
  readonly at: number | undefined;
}

/** Tells listeners how a queue changes. Several changes in a row call them once, in a microtask. */
export class Reports {
  readonly #clock: () => number;
  readonly #onChange: ThrottleOptions["onChange"];
  readonly #pending: () => number;
  readonly #limits: () => Limits | undefined;
  /** The lines in which places may have changed since the listeners were called. */
  readonly #changed = new Set<Line>();
  readonly #subscribers = new Set<(queue: QueueState) => void>();
  /** The last place of each line, while there are subscribers. */
  readonly #lastPlaces = new Map<Line, LastPlace>();
  /** The number of waiting calls when `onChange` was last called. */
  #reported = 0;

  /** `limits` returns the limiter by which waits are computed; undefined if they cannot be known. */
  constructor(
    clock: () => number,
    onChange: ThrottleOptions["onChange"],
    pending: () => number,
    limits: () => Limits | undefined,
  ) {
    this.#clock = clock;
    this.#onChange = onChange;
    this.#pending = pending;
    this.#limits = limits;
  }

  /** Calls a listener with the state of the queue, soon if calls wait. Returns a function that stops that. */
  subscribe(listener: (queue: QueueState) => void, lines: Iterable<Line>): () => void {
    // A function of its own, so that one listener can subscribe twice.
    const own = (queue: QueueState) => listener(queue);
    this.#subscribers.add(own);
    for (const line of lines) this.note(line);
    return () => {
      this.#subscribers.delete(own);
      if (!this.#subscribers.size) this.#lastPlaces.clear();
    };
  }

  /** Notes that places in a line may have changed. */
  note(line: Line): void {
    if (!line.listeners.size && !this.#onChange && !this.#subscribers.size) return;
    if (!this.#changed.size) queueMicrotask(() => this.#call());
    this.#changed.add(line);
  }

  #call(): void {
    const pending = this.#pending();
    const calls: (() => void)[] = [];
    if (pending !== this.#reported) calls.push(() => this.#onChange?.({ pending }));
    this.#reported = pending;
    const limits = this.#limits();
    for (const line of this.#changed) {
      const last = this.#subscribers.size
        ? (position: number, at: number | undefined) => this.#noteLast(line, { position, at })
        : undefined;
      calls.push(...changedPlaces(line, limits, this.#clock(), last));
    }
    this.#changed.clear();
    if (this.#subscribers.size) {
      const state = this.#state(pending);
      for (const listener of this.#subscribers) calls.push(() => listener(state));
    }
    // Called only after all places are computed, since a listener may use the throttle. Its errors are only logged.
    for (const call of calls) (async () => call())().catch(console.warn);
  }

  #noteLast(line: Line, place: LastPlace): void {
    if (place.position > 0) this.#lastPlaces.set(line, place);
    else this.#lastPlaces.delete(line);
  }

  /** Returns the state of the queue, by the line whose last call waits longest. */
  #state(pending: number): QueueState {
    let longest: LastPlace = { position: 0, at: undefined };
    for (const place of this.#lastPlaces.values())
      if ((place.at ?? place.position) > (longest.at ?? longest.position)) longest = place;
    const { position, at } = longest;
    if (position === 0) return { pending, position, wait: 0 };
    return { pending, position, wait: at === undefined ? undefined : Math.max(at - this.#clock(), 0) };
  }
}
