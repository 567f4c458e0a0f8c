import type { Store } from "../store/index.ts";
import { check, checkIs } from "./checks.ts";

/** A store as the cases use it: with keys of their own, and with its results checked. */
export class Client {
  readonly store: Store;
  readonly #prefix: string;

  constructor(store: Store, prefix: string) {
    const { get, swap } = (store ?? {}) as Partial<Store>;
    check(typeof get === "function" && typeof swap === "function", "it has the methods get and swap");
    this.store = store;
    this.#prefix = prefix;
  }

  /** Returns the text of a key; `null` if there is none. */
  async get(key: string): Promise<string | null> {
    const found = (await this.store.get(this.#prefix + key)) ?? null;
    check(found === null || typeof found === "string", "get returns a string, null or undefined");
    return found;
  }

  async swap(key: string, before: string | null, after: string | null, ttl = hour): Promise<boolean> {
    const swapped: unknown = await this.store.swap(
      this.#prefix + key,
      before,
      after,
      after === null ? 0 : ttl,
    );
    check(typeof swapped === "boolean", "swap returns true or false, and nothing else");
    return swapped;
  }

  /** Checks the text of a key. */
  async has(key: string, expected: string | null, rule: string): Promise<void> {
    checkIs(await this.get(key), expected, rule);
  }

  /** Checks that a swap succeeds. */
  async swaps(
    key: string,
    before: string | null,
    after: string | null,
    rule: string,
    ttl = hour,
  ): Promise<void> {
    checkIs(await this.swap(key, before, after, ttl), true, rule);
  }

  /** Checks that a swap fails. */
  async keeps(key: string, before: string | null, after: string | null, rule: string): Promise<void> {
    checkIs(await this.swap(key, before, after), false, rule);
  }
}

const hour = 3_600_000;
