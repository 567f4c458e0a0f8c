import type { Policies } from "../index.ts";
import { Column } from "./column.ts";

/**
 * Prices of Cloudflare's paid plan past what is included, in US dollars per million, and the operations of an object
 * in each mode. `docs/cost.md` has the measurements: a test compares.
 */
const cloudflare = {
  asOf: "September 2026",
  objectRequests: 0.15,
  rowsWritten: 1,
  /** The first hit of a key writes a row more, and the alarm after its end is a request. */
  rowsOfNewKey: 1,
  requestsOfEndedKey: 1,
  /** How long an isolate repeats a denial, in milliseconds. */
  denyCache: 2_000,
  /** Under leases: the fewest hits in so many milliseconds for which there is one, and what it takes. */
  lease: { span: 8_000, hits: 3, shortest: 1_000, hitsPerTtl: 32, requestsPerTtl: 1.5, warmUp: 2 },
  /** Under credit: an alarm in so many milliseconds, while the key is in use and once after it. */
  credit: { span: 7_000, hits: 3, requests: 1, rows: 2, requestsAtEnd: 1, rowsAtEnd: 3 },
  /** A key whose cost was set aside and is given back, because another key of the rule denied. */
  cancelled: { requests: 2, rows: 2 },
} as const;

/** The price of one mode. */
export interface ModePrice {
  readonly mode: string;
  readonly objectRequests: number;
  readonly rowsWritten: number;
  readonly usd: number;
}

/** An estimate of what a log's hits cost as calls of Durable Objects, by mode. */
export interface PriceSummary {
  /** When the prices were published. */
  readonly asOf: string;
  readonly modes: readonly ModePrice[];
  /** By how much the log is multiplied to be as long as a month of 30 days; undefined if it is shorter than an hour. */
  readonly perMonth?: number;
}

const hour = 3_600_000;

/** The hits of each key in one span of time after the other. */
class Spans {
  readonly #length: number;
  readonly #spans = new Column();
  readonly #hits = new Column();
  readonly #wasBusy = new Column();
  readonly #close: (hits: number, wasBusy: boolean, isLast: boolean) => boolean;

  /** `close` is called at the end of each span of a key with hits; it returns whether the span was busy. */
  constructor(length: number, close: (hits: number, wasBusy: boolean, isLast: boolean) => boolean) {
    this.#length = length;
    this.#close = close;
  }

  add(key: number, time: number): void {
    const span = Math.floor(time / this.#length);
    const before = this.#spans.get(key);
    if (span !== before) {
      if (this.#hits.get(key) > 0) this.#end(key, span > before + 1);
      this.#spans.set(key, span);
      this.#hits.set(key, 0);
    }
    this.#hits.add(key, 1);
  }

  /** Ends the spans of all keys below a number. */
  end(keys: number): void {
    for (let key = 0; key < keys; key += 1) if (this.#hits.get(key) > 0) this.#end(key, true);
  }

  #end(key: number, isLast: boolean): void {
    const isBusy = this.#close(this.#hits.get(key), this.#wasBusy.get(key) > 0, isLast);
    this.#hits.set(key, 0);
    this.#wasBusy.set(key, Number(isBusy && !isLast));
  }
}

/** Estimates what the hits of a log cost as calls of Durable Objects, through one isolate. */
export class Traffic {
  #hits = 0;
  #allowed = 0;
  #repeated = 0;
  #violations = 0;
  #cancelled = 0;
  #keys = 0;
  #from: number | undefined;
  #to = 0;
  readonly #known = new Column();
  readonly #deniedUntil = new Column();
  #leased = 0;
  readonly #credit = { requests: 0, rows: 0 };
  readonly #mayRepeat: boolean;
  readonly #hasBan: boolean;

  /** Under leases, allowed hits are requests and rows only when a lease is renewed. */
  readonly #leases = new Spans(cloudflare.lease.span, (hits, wasBusy) => {
    const { span, hits: fewest, shortest, hitsPerTtl, requestsPerTtl, warmUp } = cloudflare.lease;
    if (hits < fewest) {
      this.#leased += hits;
      return false;
    }
    const ttl = Math.min(span, Math.max(shortest, (hitsPerTtl * span) / hits));
    this.#leased += Math.min(hits, (wasBusy ? 0 : warmUp) + (requestsPerTtl * span) / ttl);
    return true;
  });

  /** Under credit, rows are written by alarms only. */
  readonly #credits = new Spans(cloudflare.credit.span, (hits, _, isLast) => {
    const { hits: fewest, requests, rows, requestsAtEnd, rowsAtEnd } = cloudflare.credit;
    if (hits < fewest) {
      this.#credit.rows += hits;
      return false;
    }
    this.#credit.requests += requests + (isLast ? requestsAtEnd : 0);
    this.#credit.rows += Math.min(hits, rows + (isLast ? rowsAtEnd : 0));
    return true;
  });

  constructor(policies: Policies | readonly Policies[]) {
    const all = [policies].flat(2);
    this.#mayRepeat = !all.some((policy) => "denied" in policy && policy.denied === "count");
    this.#hasBan = all.some(({ algorithm }) => algorithm === "ban");
  }

  /** Adds a hit of a key. `wait` is how long a denial lasts. */
  add(time: number, key: number, allowed: boolean, wait: number, isBanned: boolean): void {
    this.#from ??= time;
    this.#to = time;
    this.#hits += 1;
    this.#keys += 1 - this.#known.get(key);
    this.#known.set(key, 1);
    if (allowed) {
      this.#allowed += 1;
      this.#leases.add(key, time);
      this.#credits.add(key, time);
    } else if (this.#hasBan && !isBanned) this.#violations += 1;
    else if (this.#mayRepeat && time < this.#deniedUntil.get(key)) this.#repeated += 1;
    else this.#deniedUntil.set(key, time + Math.min(wait, cloudflare.denyCache));
  }

  /** Adds a key whose cost was set aside in vain. */
  addCancelled(): void {
    this.#cancelled += 1;
  }

  summary(): PriceSummary {
    this.#leases.end(this.#known.length);
    this.#credits.end(this.#known.length);
    const denied = this.#hits - this.#allowed;
    const requests = denied - this.#repeated;
    const modes = [
      this.#mode("without the deny cache", denied + this.#allowed, this.#allowed),
      this.#mode("by default", requests + this.#allowed, this.#allowed),
      this.#mode("credit = true", requests + this.#allowed + this.#credit.requests, this.#credit.rows),
      this.#mode("leases = true", requests + this.#leased, this.#leased),
      this.#mode(
        "both",
        requests + this.#leased + this.#credit.requests,
        Math.min(this.#credit.rows, this.#leased),
      ),
    ];
    const length = this.#to - (this.#from ?? this.#to);
    return {
      asOf: cloudflare.asOf,
      modes: this.#mayRepeat ? modes : modes.slice(0, 1),
      ...(length >= hour ? { perMonth: (720 * hour) / length } : {}),
    };
  }

  #mode(mode: string, calls: number, rows: number): ModePrice {
    const { requestsOfEndedKey, rowsOfNewKey, cancelled } = cloudflare;
    const objectRequests = Math.round(
      calls + this.#keys * requestsOfEndedKey + this.#cancelled * cancelled.requests,
    );
    const rowsWritten = Math.round(
      rows + this.#violations + this.#keys * rowsOfNewKey + this.#cancelled * cancelled.rows,
    );
    const usd = (objectRequests * cloudflare.objectRequests + rowsWritten * cloudflare.rowsWritten) / 1e6;
    return { mode, objectRequests, rowsWritten, usd };
  }
}
