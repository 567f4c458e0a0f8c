import { DurableObject } from "cloudflare:workers";

/** A token bucket by hand: in memory, in one row, and gone when it is full again. */
export class RateLimiterObject extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.sql = ctx.storage.sql;
    this.load();
  }

  load() {
    this.sql.exec(
      "CREATE TABLE IF NOT EXISTS bucket (id INTEGER PRIMARY KEY, tokens REAL NOT NULL, at INTEGER NOT NULL, full INTEGER NOT NULL)",
    );
    const [row] = this.sql.exec("SELECT tokens, at, full FROM bucket").toArray();
    this.bucket = row;
  }

  hit({ capacity, refillRate, per }, cost = 1) {
    const perToken = per / refillRate;
    const { tokens, at } = this.bucket ?? { tokens: capacity, at: 0 };
    const now = Math.max(Date.now(), at);
    const content = Math.min(capacity, tokens + (now - at) / perToken);
    const allowed = content >= cost;
    const left = allowed ? content - cost : content;
    const resetAfter = Math.ceil((capacity - left) * perToken);
    if (allowed) this.save({ tokens: left, at: now, full: now + resetAfter });
    return {
      allowed,
      limit: capacity,
      remaining: Math.floor(left),
      moreAfter: Math.ceil((Math.floor(left) + 1 - left) * perToken),
      retryAfter: allowed ? 0 : Math.ceil((cost - content) * perToken),
      resetAfter,
    };
  }

  save(bucket) {
    if (this.bucket === undefined) this.ctx.storage.setAlarm(bucket.full);
    this.bucket = bucket;
    this.sql.exec(
      "INSERT OR REPLACE INTO bucket (id, tokens, at, full) VALUES (0, ?, ?, ?)",
      bucket.tokens,
      bucket.at,
      bucket.full,
    );
  }

  async alarm() {
    if (this.bucket !== undefined && this.bucket.full > Date.now()) {
      this.ctx.storage.setAlarm(this.bucket.full);
      return;
    }
    await this.ctx.storage.deleteAll();
    this.load();
  }
}
