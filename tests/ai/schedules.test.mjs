// Whatever happens in whatever order to several calls at once, each is charged once: what the provider said if it said it,
// no less than what was delivered, and no more than what was reserved, said or sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter } from "tollgate";
import { budgetFetch } from "tollgate/ai";
import fc from "../lib/properties.mjs";
import { MovedTime, policies, prices, settled } from "./lib/setting.mjs";

/** The most tokens of each call. */
const most = 40;

const event = (data) => Buffer.from(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);

/** A call whose provider and reader do what a schedule says. */
class Call {
  sent = 0;
  delivered = 0;
  said = undefined;
  hasEnded = false;
  wasLeft = false;
  wasRefused = false;
  #chunks;
  #reader;
  #isReading = false;
  #controller = new AbortController();
  #answer = Promise.withResolvers();

  constructor(budget, key) {
    const { signal } = this.#controller;
    const source = new ReadableStream({
      start: (chunks) => {
        this.#chunks = chunks;
      },
    });
    this.fetch = async () => {
      const status = await Promise.race([
        this.#answer.promise,
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      ]);
      if (status !== 200) return new Response("busy", { status });
      return new Response(source, { headers: { "Content-Type": "text/event-stream" } });
    };
    const body = JSON.stringify({
      model: "gpt-5",
      messages: [{ role: "user", content: "hello" }],
      max_tokens: most,
      stream: true,
    });
    this.asked = budget(key, this.fetch)("https://x/chat/completions", { method: "POST", body, signal }).then(
      (response) => {
        if (response.ok) this.#reader = response.body.getReader();
      },
      () => {},
    );
  }

  answer = () => this.#answer.resolve(200);
  refuse = () => {
    this.wasRefused ||= !this.hasAnswered;
    this.#answer.resolve(429);
  };
  get hasAnswered() {
    return this.#reader !== undefined;
  }

  #send(data) {
    if (this.hasEnded) return false;
    try {
      this.#chunks.enqueue(event(data));
    } catch {
      // Its reader has gone.
    }
    return true;
  }
  text = () => {
    if (this.said === undefined && this.#send({ choices: [{ delta: { content: "word" } }] })) this.sent += 1;
  };
  usage = () => {
    if (this.hasEnded || this.said !== undefined) return;
    this.said = this.sent + 3;
    this.#send({ choices: [{ delta: {}, finish_reason: "stop" }] });
    this.#send({ choices: [], usage: { prompt_tokens: 2, completion_tokens: this.said } });
  };
  error = () => this.#send({ error: { message: "overloaded" } });
  end = () => {
    if (!this.#send("[DONE]")) return;
    this.hasEnded = true;
    try {
      this.#chunks.close();
    } catch {
      // Its reader has gone.
    }
  };
  cut = () => {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.#chunks.error(new TypeError("terminated"));
  };
  read = () => {
    if (this.#reader === undefined || this.#isReading) return;
    this.#isReading = true;
    this.#reader.read().then(
      ({ value }) => {
        this.#isReading = false;
        this.delivered +=
          Buffer.from(value ?? "")
            .toString()
            .match(/word/g)?.length ?? 0;
      },
      () => {},
    );
  };
  leave = () => {
    this.wasLeft = true;
    this.#reader?.cancel().catch(() => {});
  };
  abort = () => {
    this.wasLeft = true;
    this.#controller.abort(new Error("enough"));
  };
}

const calls = 4;
/** What happens to calls, and how often. */
const events = {
  answer: 8,
  text: 16,
  read: 24,
  usage: 4,
  end: 3,
  cut: 1,
  error: 1,
  refuse: 1,
  leave: 1,
  abort: 1,
};
const names = Object.entries(events).flatMap(([name, times]) => Array(times).fill(name));
const step = fc.oneof(
  { weight: 40, arbitrary: fc.tuple(fc.constantFrom(...names), fc.nat(calls - 1)) },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.constant("move"), fc.constantFrom(1, 29_999, 30_000, 60_000, 700_000)),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant("limiter"), fc.constantFrom("up", "up", "away", "silent")) },
);

/** A limiter that is away, or does what it is asked and does not say so. */
function unreliable(inner, state) {
  const told = async (work) => {
    if (state.limiter === "away") throw new Error("away");
    const result = work();
    if (state.limiter === "silent") throw new Error("silent");
    return result;
  };
  return {
    policies: inner.policies,
    async reserve(...args) {
      const { decision, id, settle, extend } = bound(inner.reserve(...args));
      return {
        decision,
        id,
        settle: (used) => told(() => settle(used)),
        extend: (ttl) => told(() => extend(ttl)),
      };
    },
    inc: async (...args) => {
      // A refund is asked for once.
      if (state.limiter !== "up") throw new Error("away");
      return inner.inc(...args);
    },
  };
}

const bound = (reservation) => ({
  decision: reservation.decision,
  id: reservation.id,
  settle: (used) => reservation.settle(used),
  extend: (ttl) => reservation.extend(ttl),
});

test("every schedule of events charges each call once", async (t) => {
  t.mock.method(console, "warn", () => {});
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 120, size: "max" }),
      fc.constantFrom(undefined, "reserved", "delivered"),
      async (steps, onAbort) => {
        const time = new MovedTime();
        const inner = new RateLimiter(policies(), { clock: time.clock });
        const state = { limiter: "up" };
        const limiter = unreliable(inner, state);
        const charges = new Map();
        const twice = [];
        const onCharge = (charge) => {
          if (charges.has(charge.key)) twice.push(charge.key);
          charges.set(charge.key, charge);
        };
        const { clock, timer } = time;
        const budget = (key, fetch) =>
          budgetFetch({ limiter, key, prices, onAbort, onCharge, clock, timer, fetch });
        const all = Array.from({ length: calls }, (_, number) => new Call(budget, `call ${number}`));
        await settled();
        let wasAlwaysUp = true;
        let longest = 0;
        for (const [what, argument] of steps) {
          if (what === "move") {
            longest += argument;
            await time.move(argument);
          } else if (what === "limiter") {
            state.limiter = argument;
            wasAlwaysUp &&= argument === "up";
          } else all[argument][what]();
          await settled();
        }
        state.limiter = "up";
        for (const call of all) call.abort();
        await Promise.all(all.map(({ asked }) => asked));
        await settled();
        await time.move(3_600_000);
        await settled();
        assert.deepEqual([time.timers, twice], [0, []]);
        for (const [number, call] of all.entries()) {
          const key = `call ${number}`;
          const charged = inner.get(key, "outputTokens");
          assert.equal(inner.get(key, "running"), 0);
          assert.ok(charged >= call.delivered, `${charged} of ${call.delivered} delivered`);
          // What is sent is estimated at two tokens for a word.
          assert.ok(charged <= Math.max(most, call.said ?? 0, 2 * call.sent), `${charged}`);
          const charge = charges.get(key);
          if (charge === undefined) {
            // Refused, or an error before any output: the reservation may have expired before.
            assert.ok(charged === 0 || !wasAlwaysUp || longest >= 60_000, `${charged} without a charge`);
            continue;
          }
          // It is told what was reserved if the limiter never says what it did.
          if (!wasAlwaysUp) continue;
          assert.ok(charge.usd > 0);
          assert.equal(charge.usd, inner.get(key, "usd"));
          // A stream that was read to its usage, within the life of its reservation.
          if (call.said !== undefined && charge.usage?.outputTokens === call.said && longest < 60_000)
            assert.equal(charged, call.said);
        }
      },
    ),
    { numRuns: 1_000 },
  );
});
