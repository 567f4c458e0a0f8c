import { absent } from "../access-log/format.ts";
import { Table } from "../access-log/keys.ts";
import type { Gateway } from "./gateway.ts";
import type { LoggedRequest } from "./logged-request.ts";

/** The header with the client's address. */
const address = "cf-connecting-ip";

/**
 * The plans of requests, by the gateway, in a cache. The gateway plans each route once for a fixed address: routes with
 * the same plan have the same limits for every client. Then it plans once for each address on such routes.
 */
export class Plans {
  readonly #gateway: Gateway;
  readonly #request: LoggedRequest;
  readonly #numberOf: (plan: string) => number;
  /** The other headers that the gateway has read, and that lines may have: their values are a part of the route. */
  readonly #others = new Set<string>();
  /** The plans of routes for the fixed address. */
  readonly #limits = new Table();
  /** The number in `#limits`, by method and path. */
  readonly #routes = new Cache();
  /** The number of the plan, by the number in `#limits` and address. */
  readonly #plans = new Cache();

  readonly #hasNewKeys: boolean;

  /** `numberOf` returns the same number for the same plan. */
  constructor(gateway: Gateway, request: LoggedRequest, numberOf: (plan: string) => number) {
    this.#hasNewKeys = gateway.limits().some(({ newKeys }) => newKeys !== undefined);
    this.#gateway = gateway;
    this.#request = request;
    this.#numberOf = numberOf;
  }

  /** Returns the number of the plan for the last line. */
  next(): number {
    const { method, path } = this.#request;
    const route = this.#route(method, path);
    const client = this.#request.get(address) ?? "";
    return this.#plans.get(route, client) ?? this.#plans.add(route, client, this.#planned(method, path));
  }

  /** Returns the number of a route's plan for the fixed address. */
  #route(method: string, path: string): number {
    const route = this.#others.size === 0 ? path : this.#othersOf() + path;
    const known = this.#routes.get(method, route);
    if (known !== undefined) return known;
    const plan = this.#gateway.plan(method, path, this.#fixedClient) ?? "";
    return this.#routes.add(method, route, this.#limits.add(plan));
  }

  /** Returns the number of a plan. Where new keys are limited, its last line is the object of the client's address. */
  #planned(method: string, path: string): number {
    const plan = this.#gateway.plan(method, path, this.#request) ?? "";
    const hasAddress = this.#hasNewKeys && plan.includes(" ");
    return this.#numberOf(hasAddress ? `${plan}\n${this.#gateway.newKeysObject(this.#request)}` : plan);
  }

  #othersOf(): string {
    let values = "";
    for (const name of this.#others) {
      const value = this.#request.get(name) ?? "";
      // With its length, so that no two lists of values have the same text.
      values += `${value.length} ${value} `;
    }
    return values;
  }

  /** The request as if it came from the fixed address. */
  readonly #fixedClient = {
    get: (name: string): string | undefined => {
      if (name === address) return "192.0.2.1";
      if (this.#request.header(name) !== absent && !this.#others.has(name)) this.#addHeader(name);
      return this.#request.get(name);
    },
  };

  /** Makes a header part of the route, and clears the cache, which does not have it. */
  #addHeader(name: string): void {
    this.#others.add(name);
    this.#routes.clear();
    this.#plans.clear();
  }
}

/** The most numbers in a cache. */
const mostCached = 262_144;

/** Numbers by two keys, of which the first has few values. It is cleared when it is full. */
class Cache {
  readonly #numbers = new Map<string | number, Map<string, number>>();
  #size = 0;

  get(first: string | number, second: string): number | undefined {
    return this.#numbers.get(first)?.get(second);
  }

  add(first: string | number, second: string, number: number): number {
    if (this.#size >= mostCached) this.clear();
    const numbers = this.#numbers.get(first) ?? new Map<string, number>();
    this.#numbers.set(copy(first), numbers);
    numbers.set(copy(second), number);
    this.#size += 1;
    return number;
  }

  clear(): void {
    this.#numbers.clear();
    this.#size = 0;
  }
}

/** Copies a value, since a slice keeps the whole text alive that it was cut from. */
const copy = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value));
