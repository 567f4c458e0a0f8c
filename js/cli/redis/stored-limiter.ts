import { RedisLimiter } from "../../redis/index.ts";
import type { Inspection } from "../../redis/inspection.ts";
import { historyPrefix, keysPrefix, limitersPrefix } from "../../redis/names.ts";
import type { Policies } from "../../types.ts";
import { CommandError } from "../errors.ts";
import type { Denial } from "../key-target.ts";
import type { Connection } from "./connection.ts";
import type { Nodes } from "./nodes.ts";
import { KeyScan } from "./scan.ts";

/** How many of Redis's keys are looked at to find the policies of a limiter. */
const maxScanned = 200_000;

/** What names a limiter in Redis. */
export interface LimiterName {
  readonly prefix: string;
  readonly name: string;
}

/** Returns Redis's time, in milliseconds since the epoch. */
export async function timeOf(connection: Pick<Connection, "send">): Promise<number> {
  const [seconds, microseconds] = (await connection.send(["TIME"])) as readonly string[];
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** A limiter as Redis has it. Its policies are those of the last operation on a key, unless they are given. */
export class StoredLimiter {
  readonly #nodes: Nodes;
  readonly #named: LimiterName;
  readonly #timeout: number;
  readonly #policies: Policies | undefined;
  #limiter: RedisLimiter | undefined;

  constructor(nodes: Nodes, named: LimiterName, timeout: number, policies: Policies | undefined) {
    this.#nodes = nodes;
    this.#named = named;
    this.#timeout = timeout;
    this.#policies = policies;
  }

  /** Returns the key in Redis. */
  nameOf(key: string): string {
    return keysPrefix(this.#named.prefix, this.#named.name) + key;
  }

  /** Returns what Redis has of a key, and when that was; `undefined` if it has nothing. */
  async read(key: string): Promise<{ seen: Inspection; now: number } | undefined> {
    const [now, value] = await Promise.all([
      timeOf(this.#nodes),
      this.#nodes.send(["GET", this.nameOf(key)]),
    ]);
    return typeof value === "string"
      ? { seen: RedisLimiter.inspect(value, now, now, this.#policies), now }
      : undefined;
  }

  /** Returns the last denials of a key that its limiter has kept, the last first. */
  async denials(key: string): Promise<Denial[]> {
    const list = historyPrefix(this.#named.prefix, this.#named.name) + key;
    const items = await this.#nodes.send(["LRANGE", list, "0", "-1"]);
    return (items as readonly string[]).flatMap(parsedItem);
  }

  /** Returns a limiter under the policies of the last entry of a key, or of another key; `undefined` if there is none. */
  async limiterOf(key: string): Promise<RedisLimiter | undefined> {
    const policies =
      this.#policies ?? (await this.read(key))?.seen.policies ?? (await this.#policiesOfAnyKey());
    if (policies === undefined) return undefined;
    this.#limiter?.[Symbol.dispose]();
    this.#limiter = new RedisLimiter(policies as Policies, {
      ...this.#named,
      client: { send: (_key, args) => this.#nodes.send(args) },
      timeout: this.#timeout,
      // It has seen nothing that Redis could have lost.
      restore: false,
    });
    return this.#limiter;
  }

  /** Returns the error for a limiter without keys, which names those that have some. */
  async missing(): Promise<CommandError> {
    const { prefix, name } = this.#named;
    const scan = new KeyScan(await this.#nodes.masters(), limitersPrefix(prefix));
    const names = new Set<string>();
    while (!scan.isDone && scan.scanned < maxScanned)
      for (const found of await scan.next()) names.add(found.slice(0, found.indexOf(":")));
    names.delete("");
    const hint =
      names.size > 0
        ? `there ${names.size === 1 ? "is" : "are"} ${[...names].sort().join(", ")}: use --name`
        : "there are no limiters with this prefix: use --prefix";
    const among = scan.isDone ? "" : ` among the ${scan.scanned} keys that were looked at`;
    return new CommandError(
      `Redis has no key of the limiter ${JSON.stringify(name)} under ${JSON.stringify(prefix)}${among}; ${hint}, or name the policies with --policies`,
    );
  }

  dispose(): void {
    this.#limiter?.[Symbol.dispose]();
  }

  async #policiesOfAnyKey(): Promise<Policies | undefined> {
    const { prefix, name } = this.#named;
    const scan = new KeyScan(await this.#nodes.masters(), keysPrefix(prefix, name));
    while (!scan.isDone && scan.scanned < maxScanned)
      for (const key of await scan.next()) {
        const read = await this.read(key).catch(() => undefined);
        if (read !== undefined) return read.seen.policies as Policies;
      }
    return undefined;
  }
}

/** Returns a denial as `js/redis/history.ts` writes it; none if it is not one. */
function parsedItem(text: string): Denial[] {
  try {
    const item = JSON.parse(text) as Denial;
    return Number.isSafeInteger(item.at) && typeof item.policy === "string" ? [item] : [];
  } catch {
    return [];
  }
}
