import { absent } from "../replay/format.ts";
import { Table } from "../replay/keys.ts";
import type { Gateway, LimitFacts } from "./gateway.ts";
import type { LoggedRequest } from "./logged-request.ts";

/** The header that holds the client's address. */
const address = "cf-connecting-ip";

/** Headers that have a part in which rules match. */
const matching = /^(upgrade|origin|access-control-|x-(http-)?method)/;

/**
 * The plans of requests, by the gateway. It is asked once for each route, with the same values in all headers of keys:
 * routes for which it returns the same then fall under the same limits. And it is asked once for each client of such
 * routes, with the request's own values.
 */
export class Plans {
  readonly #gateway: Gateway;
  readonly #request: LoggedRequest;
  readonly #numberOf: (plan: string) => number;
  /** The headers in the keys of limits. */
  readonly #keyed: readonly string[];
  /** Other headers that the gateway asked for, and that lines may have. */
  readonly #others = new Set<string>();
  /** What was planned for routes, whoever the client is. */
  readonly #limits = new Table();
  /** The number of that by method, then by path. */
  readonly #routes = new Memory();
  /** The number of the plan by that number, then by client. */
  readonly #plans = new Memory();
  #isRemembered: boolean;

  /** `numberOf` returns the same number for the same plan. */
  constructor(
    gateway: Gateway,
    request: LoggedRequest,
    limits: readonly LimitFacts[],
    numberOf: (plan: string) => number,
  ) {
    this.#gateway = gateway;
    this.#request = request;
    this.#numberOf = numberOf;
    this.#keyed = [...new Set([address, ...limits.flatMap(({ headers }) => headers)])];
    this.#isRemembered = !this.#keyed.some((name) => matching.test(name));
  }

  /** Returns the number of the plan for the line that was read last. */
  next(): number {
    const { method, path } = this.#request;
    if (!this.#isRemembered) return this.#planned(method, path);
    const route = this.#route(method, path);
    const client = this.#keyed.length === 1 ? (this.#request.get(address) ?? "") : this.#values(this.#keyed);
    return this.#plans.get(route, client) ?? this.#plans.add(route, client, this.#planned(method, path));
  }

  /** Returns the number of what the gateway plans for a route whoever the client is. */
  #route(method: string, path: string): number {
    const route = this.#others.size === 0 ? path : this.#values(this.#others) + path;
    const known = this.#routes.get(method, route);
    if (known !== undefined) return known;
    const plan = this.#gateway.plan(method, path, this.#anyone) ?? "";
    return this.#routes.add(method, route, this.#limits.add(plan));
  }

  #planned(method: string, path: string): number {
    return this.#numberOf(this.#gateway.plan(method, path, this.#request) ?? "");
  }

  #values(names: Iterable<string>): string {
    let values = "";
    for (const name of names) {
      const value = this.#request.get(name) ?? "";
      // With its length: no value can pass for two.
      values += `${value.length} ${value} `;
    }
    return values;
  }

  /** The request, with a value of no client in each header of a key. */
  readonly #anyone = {
    get: (name: string): string | undefined => {
      if (name === address) return "192.0.2.1";
      if (this.#keyed.includes(name)) return `Value of-${name}`;
      // Which cookies are in keys is not known here.
      if (name === "cookie") this.#isRemembered = false;
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
