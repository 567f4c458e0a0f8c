import type { Policy } from "../types.ts";
import { copiesOf } from "./policies.ts";

/** Policies that were read: frozen copies of those given. */
interface Read {
  readonly policies: readonly Policy[];
}

/** The most lists of policies that are known by their content, and of objects that are. */
const [mostLists, mostObjects] = [1_000, 64];

/** How many lists that are not known come before other ones become known in their place. */
const mostMissed = 16_000;

/**
 * Reads policies once: those of an object that was read before and has the same fields, and those of another object with the
 * same fields. A server that has a policy for each customer passes one with every request.
 */
export class KnownPolicies<Known extends Read> {
  readonly #read: (policies: unknown) => Known;
  // No WeakMap: it would cost every request whose policies are made anew.
  readonly #byObject = new Map<object, Known>();
  readonly #byContent = new Map<string, Known>();
  #missed = 0;

  constructor(read: (policies: unknown) => Known) {
    this.#read = read;
  }

  /** Returns policies as they were read. They have the fields that were checked, also if a getter changes them. */
  of(policies: unknown): Known {
    if (typeof policies !== "object" || policies === null) return this.#read(policies);
    let known = this.#byObject.get(policies);
    if (known !== undefined && isSame(policies, known.policies)) return known;
    const copies = copiesOf(policies);
    const content = contentOf(copies);
    known = content === undefined ? undefined : this.#byContent.get(content);
    if (known === undefined) {
      known = this.#read(copies);
      if (content === undefined || !this.#keeps(content, known)) return known;
    }
    if (this.#byObject.size >= mostObjects) this.#byObject.clear();
    this.#byObject.set(policies, known);
    return known;
  }

  /** Keeps policies unless there are too many. */
  #keeps(content: string, read: Known): boolean {
    if (this.#byContent.size >= mostLists) {
      if (++this.#missed < mostMissed) return false;
      this.#missed = 0;
      this.#byContent.clear();
    }
    this.#byContent.set(content, read);
    return true;
  }
}

/** Returns whether policies have the fields of copies. */
function isSame(policies: object, copies: readonly Policy[]): boolean {
  if (!Array.isArray(policies)) return copies.length === 1 && hasFields(policies, copies[0] as Policy);
  return (
    policies === copies ||
    (policies.length === copies.length && copies.every((copy, at) => hasFields(policies[at], copy)))
  );
}

function hasFields(policy: unknown, copy: object): boolean {
  if (typeof policy !== "object" || policy === null) return false;
  const names = Object.keys(copy);
  if (Object.keys(policy).length !== names.length) return false;
  for (const name of names) if (!Object.is(Reflect.get(policy, name), Reflect.get(copy, name))) return false;
  return true;
}

/** Returns the fields of policies as a text; `undefined` if one has a value that no policy has. */
function contentOf(copies: readonly unknown[]): string | undefined {
  let text = "";
  for (const copy of copies) {
    if (typeof copy !== "object" || copy === null) return undefined;
    text += ";";
    for (const [name, value] of Object.entries(copy)) {
      if (typeof value === "string") text += `${name}:${value.length}:${value},`;
      else if (typeof value === "number" || value == null) text += `${name}=${value},`;
      else return undefined;
    }
  }
  return text;
}
