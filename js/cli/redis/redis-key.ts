import { type JsonException, keyException } from "../../policy/exception-fields.ts";
import type { RedisLimiter } from "../../redis/index.ts";
import type { Exception, ExceptionEnd, KeyException } from "../../types.ts";
import { CommandError } from "../errors.ts";
import { type KeyReport, type KeyStory, type KeyTarget, limitOrNone, type Unbanned } from "../key-target.ts";
import type { Nodes } from "./nodes.ts";
import { Notes } from "./notes.ts";
import { type LimiterName, type StoredLimiter, timeOf } from "./stored-limiter.ts";

/** A key of a limiter in Redis. What changes it goes through its log, so that every process learns of it. */
export class RedisKey implements KeyTarget {
  readonly words: string;
  readonly json: { readonly key: string };
  readonly hint = "";
  readonly place = "Redis";
  readonly #key: string;
  readonly #policy: string | undefined;
  readonly #stored: StoredLimiter;
  readonly #nodes: Nodes;
  readonly #named: LimiterName;

  constructor(
    key: string,
    policy: string | undefined,
    stored: StoredLimiter,
    nodes: Nodes,
    named: LimiterName,
  ) {
    this.#named = named;
    this.words = key;
    this.json = { key };
    this.#key = key;
    this.#policy = policy;
    this.#stored = stored;
    this.#nodes = nodes;
  }

  async report(): Promise<KeyReport> {
    const report = await this.#report();
    if (report !== null) return report;
    throw new CommandError(`${this.#key} has no state: Redis has no ${this.#stored.nameOf(this.#key)}`);
  }

  async story(): Promise<KeyStory> {
    const [now, denials] = await Promise.all([this.#report(), this.#stored.denials(this.#key)]);
    if (now !== null || denials.length > 0) return { now, denials };
    throw new CommandError(
      `${this.#key} has no state, and no denials: Redis has no ${this.#stored.nameOf(this.#key)}, and limiters keep denials under the option history`,
    );
  }

  async #report(): Promise<KeyReport | null> {
    const read = await this.#stored.read(this.#key);
    if (read === undefined || read.seen.endsAt === 0) return null;
    const { seen, now } = read;
    const [exception = null, until = 0] = seen.exception ?? [];
    const policies = seen.states.map(({ policy, count, limit, endsAt, bannedFor, isBan }) => ({
      policy,
      count,
      limit,
      expiresAt: endsAt,
      ...(isBan ? { bannedUntil: bannedFor === 0 ? 0 : now + bannedFor } : {}),
    }));
    return {
      count: seen.count,
      limit: limitOrNone(seen.limit),
      remaining: limitOrNone(seen.remaining),
      allowed: seen.allowed,
      retryAfter: seen.retryAfter,
      moreAfter: seen.moreAfter,
      expiresAt: seen.endsAt,
      policies,
      bannedUntil: seen.bannedFor === 0 ? 0 : now + seen.bannedFor,
      exception: keyException({ exception: exception as JsonException["exception"], until }),
      reservations: seen.reservations,
      leases: seen.leases,
    };
  }

  async reset(reservations: boolean): Promise<boolean> {
    return (await this.#limiter()).reset(this.#key, { reservations });
  }

  async ban(length: string | number): Promise<number> {
    return (await this.#limiter()).ban(this.#key, length as never, this.#policy);
  }

  async unban(): Promise<Unbanned> {
    const wasBanned = await (await this.#limiter()).unban(this.#key, this.#policy);
    const { policies = [] } = (await this.#report()) ?? {};
    return { wasBanned, others: policies.filter(({ bannedUntil = 0 }) => bannedUntil > 0) };
  }

  async except(exception: Exception | null, end?: ExceptionEnd, note?: string): Promise<number> {
    const limiter = await this.#limiter();
    const until = await (exception === null
      ? limiter.except(this.#key, null)
      : limiter.except(this.#key, exception, end ?? {}));
    const now = exception === null ? until : await timeOf(this.#nodes);
    await new Notes(this.#nodes).write(this.#named, this.#key, until, now, note);
    return until;
  }

  async note(until: number): Promise<string | undefined> {
    return new Notes(this.#nodes).read(this.#named, this.#key, until);
  }

  async exception(): Promise<KeyException | null> {
    return (await this.#stored.limiterOf(this.#key))?.exceptions(this.#key) ?? null;
  }

  close(): void {
    this.#stored.dispose();
    this.#nodes.close();
  }

  async #limiter(): Promise<RedisLimiter> {
    const limiter = await this.#stored.limiterOf(this.#key);
    if (limiter === undefined) throw await this.#stored.missing();
    return limiter;
  }
}
