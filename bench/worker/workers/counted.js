const none = { objectRequests: 0, rowsWritten: 0, rowsRead: 0, alarmsSet: 0, largest: 0 };
let counts = { ...none };
/** The same of the object that gets the reports for the live page. */
let ofWatch = { ...none };
let cursors = [];
const ids = [];

/**
 * The class of an object whose calls, alarms and rows are counted: those of SQL by what workerd itself says, those of
 * the key-value store at the call, as they are billed.
 */
export function counted(Class) {
  const Counted = class extends Class {
    constructor(ctx, env) {
      const isWatch = env.LIMITERS.idFromName("tollgate:watch").equals(ctx.id);
      const own = () => (isWatch ? ofWatch : counts);
      Object.defineProperty(ctx, "storage", { value: watched(ctx.storage, own) });
      super(ctx, env);
      this.counts = own;
      if (!isWatch) ids.push(ctx.id.toString());
    }

    /** Rings the alarm as if so much time had passed. */
    async ring(after) {
      const now = Date.now;
      Date.now = () => now() + after;
      try {
        await this.alarm();
      } finally {
        Date.now = now;
      }
    }
  };
  for (const method of ["hit", "count", "lease", "hold", "release", "watch", "alarm"]) {
    Counted.prototype[method] = function (...given) {
      this.counts().objectRequests += 1;
      return Class.prototype[method].apply(this, given);
    };
  }
  return Counted;
}

const watched = (storage, own) => ({
  kv: {
    get(key) {
      own().rowsRead += 1;
      return storage.kv.get(key);
    },
    put(key, value) {
      own().rowsWritten += 1;
      own().largest = Math.max(own().largest, value.byteLength ?? value.length);
      storage.kv.put(key, value);
    },
    delete(key) {
      own().rowsWritten += 1;
      return storage.kv.delete(key);
    },
  },
  sql: {
    exec(...given) {
      const cursor = storage.sql.exec(...given);
      cursors.push(cursor);
      for (const value of given) own().largest = Math.max(own().largest, value.byteLength ?? 0);
      return cursor;
    },
  },
  setAlarm(time) {
    own().alarmsSet += 1;
    return storage.setAlarm(time);
  },
  getAlarm: () => storage.getAlarm(),
  deleteAll: () => storage.deleteAll(),
});

/** Handlers that also tell the counts since they were last told, and ring the alarm of every object that there was. */
export const telling = (handlers) => ({
  async fetch(request, env, context) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/counts") return Response.json(take());
    if (pathname !== "/ring") return handlers.fetch(request, env, context);
    const objects = ids.splice(0);
    for (const id of objects)
      await env.LIMITERS.get(env.LIMITERS.idFromString(id)).ring(Number(searchParams.get("after")));
    ids.push(...objects);
    return new Response();
  },
});

function take() {
  for (const { rowsWritten, rowsRead } of cursors) {
    counts.rowsWritten += rowsWritten;
    counts.rowsRead += rowsRead;
  }
  const taken = { ...counts, ofWatch };
  [counts, ofWatch, cursors] = [{ ...none }, { ...none }, []];
  return taken;
}
