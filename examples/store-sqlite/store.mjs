import { DatabaseSync } from "node:sqlite";

/** A store in a file of SQLite, which any number of processes may open. */
export class SqliteStore {
  #get;
  #insert;
  #update;
  #delete;
  #clean;
  #clock;

  constructor(file, clock = Date.now) {
    this.#clock = clock;
    const database = new DatabaseSync(file);
    // First, so that whatever follows waits for other processes instead of failing.
    database.exec("PRAGMA busy_timeout = 5000");
    writeAhead(database);
    database.exec(`
      CREATE TABLE IF NOT EXISTS limits (key TEXT PRIMARY KEY, value TEXT NOT NULL, ends INTEGER NOT NULL) STRICT;
      CREATE INDEX IF NOT EXISTS limits_by_end ON limits (ends);
    `);
    this.#get = database.prepare("SELECT value FROM limits WHERE key = ?");
    this.#insert = database.prepare(
      "INSERT INTO limits (key, value, ends) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    );
    this.#update = database.prepare("UPDATE limits SET value = ?, ends = ? WHERE key = ? AND value = ?");
    this.#delete = database.prepare("DELETE FROM limits WHERE key = ? AND value = ?");
    this.#clean = database.prepare(
      "DELETE FROM limits WHERE key IN (SELECT key FROM limits WHERE ends < ? LIMIT 2)",
    );
  }

  get(key) {
    return this.#get.get(key)?.value;
  }

  swap(key, before, after, ttl) {
    const now = this.#clock();
    if (before === null) {
      // Each new key removes up to two that have ended.
      this.#clean.run(now);
      return this.#insert.run(key, after, now + ttl).changes === 1;
    }
    if (after === null) return this.#delete.run(key, before).changes === 1;
    return this.#update.run(after, now + ttl, key, before).changes === 1;
  }
}

/** Turns the write-ahead log on. SQLite does not wait where several processes do so with a new file at once. */
function writeAhead(database) {
  for (let tries = 1; ; tries++)
    try {
      return database.exec("PRAGMA journal_mode = WAL");
    } catch (error) {
      const isBusy = error.errcode === 5;
      if (!isBusy || tries === 10_000) throw error;
    }
}
