// What every test needs: a server for its file, and a prefix of its own.

import { after, before } from "node:test";
import { connect, startServer } from "./server.mjs";

let prefixes = 0;

/** Starts a server for the tests of a file, and what else they need. */
export function withServer({ start = () => {}, stop = () => {} } = {}) {
  const setting = {
    server: undefined,
    redis: undefined,
    /** Options of a limiter whose keys nobody else uses. */
    options: (more = {}) => ({
      client: setting.redis,
      prefix: `test:${++prefixes}:`,
      // Long enough for a machine that does much else.
      timeout: "20s",
      ...more,
    }),
    /** Loses all keys, and waits for the next millisecond of Redis: by that, a key that is made again differs from the lost. */
    async lose() {
      const now = async () => {
        const [seconds, microseconds] = await setting.redis.time();
        return 1_000 * Number(seconds) + Math.floor(Number(microseconds) / 1_000);
      };
      const before = await now();
      await setting.redis.flushall();
      while ((await now()) === before);
    },
    /** The only key in Redis with this prefix, and its value. */
    async value({ prefix }) {
      const [key] = await setting.redis.keys(`${prefix}*`);
      return { key, text: key && (await setting.redis.get(key)) };
    },
  };
  before(async () => {
    setting.server = await startServer();
    setting.redis = connect(setting.server.port);
    await setting.redis.ping();
    await start(setting);
  });
  after(async () => {
    await stop();
    setting.redis.disconnect();
    await setting.server.stop();
  });
  return setting;
}

/** A client that does to each command what `work` says, which gets a function that sends it. */
export const through = (redis, work) => ({
  send: (key, [command, ...args]) => work(() => redis.call(command, ...args), { key, command, args }),
});

/** Runs so many works at once. */
export const times = (count, work) => Promise.all(Array.from({ length: count }, (_, number) => work(number)));

/** How many decisions were allowed. */
export const allowed = (decisions) => decisions.filter((decision) => decision.allowed).length;
