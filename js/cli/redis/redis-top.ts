import { count, inWords } from "../../access-log/words.ts";
import { RedisLimiter } from "../../redis/index.ts";
import type { Inspection } from "../../redis/inspection.ts";
import { keysPrefix, limitersPrefix } from "../../redis/names.ts";
import type { Policies } from "../../types.ts";
import { withReplies } from "../errors.ts";
import { checked, type GroupRow, type KeyRow, type Snapshot, type TopSource } from "../top/snapshot.ts";
import { type Address, shown } from "./address.ts";
import { Nodes } from "./nodes.ts";
import { KeyScan } from "./scan.ts";
import { timeOf } from "./stored-limiter.ts";

/** How many keys are kept in mind. */
const maxKnown = 50_000;

/** How long a rate is shown after the key was read, in milliseconds. */
const rateAge = 15_000;

/** What one refresh may cost. */
export interface Budget {
  /** How many values are read at most. */
  readonly keys: number;
  /** About how many keys of Redis are looked at. */
  readonly scan: number;
}

/** The limiters that are shown: one, or all with a prefix. */
export interface Shown {
  readonly prefix: string;
  readonly name: string | undefined;
}

/** A key that a scan found, and what the last reading of it said. */
interface Known {
  seen?: Inspection;
  /** By Redis's clock. */
  readAt: number;
  rate: number | null;
  denialRate: number | null;
  denied: number;
}

/** The keys of limiters in Redis, read a part at a time: a scan finds them, and those with traffic are read first. */
export class RedisTop implements TopSource {
  readonly #address: Address;
  readonly #timeout: number;
  readonly #shown: Shown;
  readonly #budget: Budget;
  readonly #known = new Map<string, Known>();
  #nodes: Nodes | undefined;
  #scan: KeyScan | undefined;
  /** Whether all keys of Redis were looked at once. */
  #isComplete = false;
  #unreadable = 0;
  /** How many keys of the limiters this scan has found, and the last whole one. */
  #found = 0;
  #foundBefore = 0;

  constructor(address: Address, timeout: number, shown: Shown, budget: Budget) {
    this.#address = address;
    this.#timeout = timeout;
    this.#shown = shown;
    this.#budget = budget;
  }

  async refresh(): Promise<Snapshot> {
    try {
      this.#nodes ??= await Nodes.open(this.#address, this.#timeout);
      const nodes = this.#nodes;
      return await withReplies(shown(this.#address), async () => checked(await this.#refresh(nodes)));
    } catch (error) {
      // The next refresh connects again.
      this.close();
      throw error;
    }
  }

  close(): void {
    this.#nodes?.close();
    this.#nodes = this.#scan = undefined;
  }

  get #prefix(): string {
    const { prefix, name } = this.#shown;
    return name === undefined ? limitersPrefix(prefix) : keysPrefix(prefix, name);
  }

  async #refresh(nodes: Nodes): Promise<Snapshot> {
    const masters = await nodes.masters();
    const sizes = await Promise.all(masters.map((master) => master.send(["DBSIZE"])));
    const inRedis = sizes.reduce((sum: number, size) => sum + Number(size), 0);
    if (this.#scan === undefined || this.#scan.isDone) this.#scan = new KeyScan(masters, this.#prefix);
    const before = this.#scan.scanned;
    while (!this.#scan.isDone && this.#scan.scanned - before < this.#budget.scan)
      for (const name of await this.#scan.next()) this.#find(name);
    if (this.#scan.isDone) {
      this.#isComplete = true;
      this.#foundBefore = this.#found;
      this.#found = 0;
    }
    const names = this.#chosen();
    const now = await timeOf(nodes);
    await Promise.all(names.map((name) => this.#read(nodes, name, now)));
    return this.#snapshot(now, names.length, inRedis, this.#scan.scanned);
  }

  #find(name: string): void {
    this.#found++;
    if (this.#known.size < maxKnown && !this.#known.has(name))
      this.#known.set(name, { readAt: 0, rate: null, denialRate: null, denied: 0 });
  }

  /** Returns the keys to read: half of them those with the most traffic, then those that were not read for longest. */
  #chosen(): string[] {
    const traffic = ({ rate, denialRate }: Known) => (rate ?? 0) + (denialRate ?? 0);
    const busy = [...this.#known]
      .filter(([, known]) => traffic(known) > 0)
      .sort(([, one], [, other]) => traffic(other) - traffic(one))
      .slice(0, Math.ceil(this.#budget.keys / 2))
      .map(([name]) => name);
    const chosen = new Set(busy);
    // A key moves to the end when it is read.
    for (const name of this.#known.keys()) {
      if (chosen.size >= this.#budget.keys) break;
      chosen.add(name);
    }
    return [...chosen];
  }

  async #read(nodes: Nodes, name: string, now: number): Promise<void> {
    const known = this.#known.get(name) as Known;
    this.#known.delete(name);
    const value = await nodes.send(["GET", this.#prefix + name]).catch((error) => {
      // A key of another type is not one of a limiter.
      if (String(error.message).startsWith("WRONGTYPE")) return null;
      throw error;
    });
    if (typeof value !== "string") return;
    let seen: Inspection;
    try {
      seen = RedisLimiter.inspect(value, now, known.readAt === 0 ? now : known.readAt);
    } catch {
      this.#unreadable++;
      return;
    }
    if (seen.endsAt === 0 && seen.last < now - rateAge) return;
    this.#known.set(name, updated(known, seen, now));
  }

  #snapshot(now: number, read: number, inRedis: number, scanned: number): Snapshot {
    const known = [...this.#known].flatMap(([name, key]) =>
      key.seen === undefined
        ? []
        : [[this.#named(name), { ...key, seen: key.seen, ...ratesAt(key, now) }] as const],
    );
    const keys = known.map(([named, key]) => rowOf(named, key, now));
    const found = Math.max(this.#known.size, this.#known.size < maxKnown ? 0 : this.#foundBefore);
    const looked = Math.min(scanned, inRedis);
    const coverage = [
      `${count(Math.min(read, found))} of ${count(found)}${this.#isComplete ? "" : "+"} keys read`,
      this.#isComplete ? "" : `${count(looked)} of ${count(inRedis)} in Redis looked at`,
      found >= maxKnown ? `no more than ${count(maxKnown)} are kept` : "",
    ];
    return {
      at: now,
      source: `redis ${shown(this.#address)}`,
      coverage: coverage.filter((part) => part !== "").join(", "),
      read: {
        keysRead: Math.min(read, found),
        keysFound: found,
        isComplete: this.#isComplete,
        keysScanned: Math.ceil(looked),
        keysInRedis: inRedis,
        unreadable: this.#unreadable,
      },
      deniedSince: "seen in the log since the start",
      groups: groupsOf(known.map(([{ limiter }, key]) => [limiter, key])),
      keys,
    };
  }

  /** Returns the name of the limiter, and the key. */
  #named(name: string): { limiter: string; key: string } {
    if (this.#shown.name !== undefined) return { limiter: this.#shown.name, key: name };
    const at = name.indexOf(":");
    return { limiter: name.slice(0, at), key: name.slice(at + 1) };
  }
}

/** Returns the rates of a key, if they are not too old. */
const ratesAt = ({ readAt, rate, denialRate }: Known, now: number) =>
  now - readAt > rateAge ? { rate: null, denialRate: null } : { rate, denialRate };

/** Returns what is known of a key after a reading. */
function updated(before: Known, seen: Inspection, now: number): Known {
  const elapsed = (now - before.readAt) / 1_000;
  if (before.seen === undefined || elapsed <= 0)
    return { seen, readAt: now, rate: null, denialRate: null, denied: before.denied };
  // A reset, a restored key and other policies begin a count anew.
  const isSame = seen.line === before.seen.line && seen.charged >= before.seen.charged;
  const charged = Math.max(isSame ? seen.charged - before.seen.charged : 0, seen.hits - seen.denied);
  return {
    seen,
    readAt: now,
    rate: charged / elapsed,
    denialRate: seen.denied / elapsed,
    denied: before.denied + seen.denied,
  };
}

function rowOf(
  { limiter, key }: { limiter: string; key: string },
  { seen, readAt, rate, denied }: Known & { seen: Inspection },
  now: number,
): KeyRow {
  const passed = now - readAt;
  const { policy, used, limit } = bindingOf(seen);
  return {
    key,
    limiter,
    policy,
    used,
    limit,
    rate,
    denied,
    bannedUntil: seen.bannedFor > passed ? readAt + seen.bannedFor : 0,
    reservations: seen.reservations,
    leases: seen.leases,
    endsAt: seen.endsAt,
  };
}

/** Returns the state of which the largest part is used; that of a ban only if there are no others. */
function bindingOf({ states, policies }: Inspection): Inspection["states"][number] {
  const isBan = (at: number) => policies[at]?.algorithm === "ban";
  const counting = states.filter((_, at) => !isBan(at));
  const all = counting.length > 0 ? counting : states;
  return all.reduce((most, state) => (state.used / state.limit > most.used / most.limit ? state : most));
}

/** Returns the sums by limiter and policies. */
function groupsOf(known: readonly (readonly [string, Known & { seen: Inspection }])[]): GroupRow[] {
  const groups = new Map<string, GroupRow>();
  for (const [limiter, { seen, rate, denialRate }] of known) {
    const policies = inWords(seen.policies as Policies);
    const id = JSON.stringify([limiter, policies]);
    const sum = groups.get(id) ?? {
      rate: null,
      denialRate: null,
      keys: 0,
      banned: 0,
      reservations: 0,
      leases: 0,
    };
    groups.set(id, {
      name: limiter,
      policies,
      rate: added(sum.rate, rate),
      denialRate: added(sum.denialRate, denialRate),
      keys: Number(sum.keys) + 1,
      banned: Number(sum.banned) + Number(seen.bannedFor > 0),
      reservations: Number(sum.reservations) + seen.reservations,
      leases: Number(sum.leases) + seen.leases,
    });
  }
  return [...groups.values()].sort(
    (one, other) => Number(other.keys) - Number(one.keys) || (one.name < other.name ? -1 : 1),
  );
}

const added = (sum: number | null, more: number | null): number | null =>
  sum === null ? more : sum + (more ?? 0);
