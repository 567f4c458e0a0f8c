import { absent } from "../replay/format.ts";
import { Table } from "../replay/keys.ts";
import type { Gateway } from "./gateway.ts";
import type { LoggedRequest } from "./logged-request.ts";

/** The header that holds the client's address. */
const address = "cf-connecting-ip";

/**
 * The plans of requests, by the gateway. It is asked once for each route, as if all came from one address: routes for
 * which it returns the same then fall under the same limits, whoever the client is. And it is asked once for each address
 * on such routes.
 */
export class Plans {
  readonly #gateway: Gateway;
  readonly #request: LoggedRequest;
  readonly #numberOf: (plan: string) => number;
  /** The other headers that the gateway asked for, and that lines may have: their values are a part of the route. */
  readonly #others = new Set<string>();
  /** What was planned for routes, if all came from one address. */
  readonly #limits = new Table();
  /** The number of that by method, then by path. */
  readonly #routes = new Memory();
  /** The number of the plan by that number, then by address. */
  readonly #plans = new Memory();

  /** `numberOf` returns the same number for the same plan. */
  constructor(gateway: Gateway, request: LoggedRequest, numberOf: (plan: string) => number) {
    this.#gateway = gateway;
    this.#request = request;
    this.#numberOf = numberOf;
  }

  /** Returns the number of the plan for the line that was read last. */
  next(): number {
    const { method, path } = this.#request;
    const route = this.#route(method, path);
    const client = this.#request.get(address) ?? "";
    return this.#plans.get(route, client) ?? this.#plans.add(route, client, this.#planned(method, path));
  }

  /** Returns the number of what the gateway plans for a route if all come from one address. */
  #route(method: string, path: string): number {
    const route = this.#others.size === 0 ? path : this.#othersOf() + path;
    const known = this.#routes.get(method, route);
    if (known !== undefined) return known;
    const plan = this.#gateway.plan(method, path, this.#anyone) ?? "";
    return this.#routes.add(method, route, this.#limits.add(plan));
  }

  #planned(method: string, path: string): number {
    return this.#numberOf(this.#gateway.plan(method, path, this.#request) ?? "");
  }

  #othersOf(): string {
    let values = "";
    for (const name of this.#others) {
      const value = this.#request.get(name) ?? "";
      // With its length: no value can pass for two.
      values += `${value.length} ${value} `;
    }
    return values;
  }

  /** The request as if it came from that one address. */
  readonly #anyone = {
    get: (name: string): string | undefined => {
      if (name === address) return "192.0.2.1";
      if (this.#request.header(name) !== absent && !this.#others.has(name)) this.#notice(name);
      return this.#request.get(name);
    },
  };

  /** Forgets what is remembered: it does not say what this header was. */
  #notice(name: string): void {
    this.#others.add(name);
    this.#routes.clear();
    this.#plans.clear();
  }
}

/** How many numbers are remembered. */
const mostRemembered = 262_144;

/** Numbers by two keys, of which the first has few values. It forgets all when there are too many. */
class Memory {
  readonly #numbers = new Map<string | number, Map<string, number>>();
  #size = 0;

  get(first: string | number, second: string): number | undefined {
    return this.#numbers.get(first)?.get(second);
  }

  add(first: string | number, second: string, number: number): number {
    if (this.#size >= mostRemembered) this.clear();
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

/** A part of a line keeps all of the text alive that it was cut from: a copy does not. */
const copy = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value));
