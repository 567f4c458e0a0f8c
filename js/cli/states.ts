import { type Decision, type Policies, type Policy, type State, step } from "../index.ts";

/** Decides the hits of one set of policies. */
export interface Store {
  hit(object: number, cost: number): Decision;
  /** Returns what a hit would return. Changes no state. */
  peek(object: number, cost: number): Decision;
}

const listOf = (policies: Policies): readonly Policy[] =>
  Array.isArray(policies) ? policies : [policies as Policy];

const namesOf = (policies: Policies): readonly string[] =>
  listOf(policies).map(({ name, algorithm }) => name ?? algorithm);

/** Returns true if a policy is in more than one set. */
export function sharesPolicies(sets: readonly Policies[]): boolean {
  const names = sets.flatMap(namesOf);
  return new Set(names).size < names.length;
}

/** The state of one policy. */
type PolicyState = readonly [State["policies"][number], State["states"][number]];

/** States by object and policy name, as Durable Objects keep them: a policy has one budget, alone and with others. */
export class SharedStates {
  readonly #clock: () => number;
  readonly #objects = new Map<number, Map<string, PolicyState>>();
  /** The last state, for the fields beside the policies and their states. */
  #form: State | undefined;

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  store(policies: Policies): Store {
    const names = namesOf(policies);
    const decide = (operation: "hit" | "peek", object: number, cost: number) => {
      const states = this.#objects.get(object) ?? new Map<string, PolicyState>();
      const { decision, state } = step(
        policies,
        this.#stateOf(states, names),
        operation,
        cost,
        this.#clock(),
      );
      if (operation === "hit") this.#keep(object, states, names, state);
      return decision as Decision;
    };
    return {
      hit: (object, cost) => decide("hit", object, cost),
      peek: (object, cost) => decide("peek", object, cost),
    };
  }

  /** Returns the states of some policies as one state; null if there are none. */
  #stateOf(states: ReadonlyMap<string, PolicyState>, names: readonly string[]): State | null {
    const found = names.flatMap((name) => {
      const state = states.get(name);
      return state === undefined ? [] : [state];
    });
    if (found.length === 0 || this.#form === undefined) return null;
    return {
      ...this.#form,
      policies: found.map(([origin]) => origin),
      states: found.map(([, numbers]) => numbers),
    };
  }

  #keep(
    object: number,
    states: Map<string, PolicyState>,
    names: readonly string[],
    state: State | null,
  ): void {
    for (const name of names) states.delete(name);
    for (const [at, origin] of (state?.policies ?? []).entries())
      states.set(origin.name, [origin, state?.states[at] ?? []]);
    if (state !== null) this.#form = state;
    if (states.size === 0) this.#objects.delete(object);
    else this.#objects.set(object, states);
  }
}
