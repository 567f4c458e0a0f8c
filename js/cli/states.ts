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

/** The states of objects. Like a Durable Object, each keeps those of all policies: a policy has one budget, alone and with others. */
export class SharedStates {
  readonly #clock: () => number;
  readonly #objects = new Map<number, State>();

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  store(policies: Policies): Store {
    const decide = (operation: "hit" | "peek", object: number, cost: number) => {
      const before = this.#objects.get(object) ?? null;
      const { decision, state } = step(policies, before, operation, cost, this.#clock());
      if (state === null) this.#objects.delete(object);
      else if (operation === "hit") this.#objects.set(object, state);
      return decision as Decision;
    };
    return {
      hit: (object, cost) => decide("hit", object, cost),
      peek: (object, cost) => decide("peek", object, cost),
    };
  }
}
