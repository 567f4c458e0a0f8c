// Every limiter publishes each of its decisions once, to onDecision and on the channel, and a listener breaks nothing.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test, { describe } from "node:test";
import { fileURLToPath } from "node:url";
import { hitAll, RateLimiter, Throttle } from "tollgate";
import { hitAll as hitAllRemote, RemoteLimiter } from "tollgate/client";
import { hitAll as hitAllStored, StoreLimiter } from "tollgate/store";
import { memoryStore } from "../store/lib/stores.mjs";
import { heard } from "./lib/heard.mjs";

const clock = () => 1_800_000_000_000;
const policy = { name: "api", algorithm: "fix_window", limit: 2, scale: "1h" };
const failed = new Error("no connection");

/** Answers as the API of a Worker does, by a limiter in memory. */
function workerOf(limiter) {
  const undoable = new Map();
  const operations = {
    hit: ({ key, cost, undoable: isUndoable }) => {
      const decision = limiter.hit(key, cost);
      if (!isUndoable) return decision;
      const id = decision.allowed ? `${undoable.size}` : null;
      undoable.set(id, [key, cost]);
      return { decision, id };
    },
    undo: ({ id }) => {
      const [key, cost] = undoable.get(id);
      return { undone: limiter.inc(key, -cost) >= 0 };
    },
    peek: ({ key, cost }) => limiter.peek(key, cost),
    reserve: ({ key, cost }) => ({ ...limiter.reserve(key, cost) }),
    settle: ({ id, used }) => ({ settlement: limiter.settle(id, used) }),
    cancel: ({ id }) => ({ settlement: limiter.cancel(id) }),
  };
  return async (request) => {
    const operation = operations[new URL(request.url).pathname.split("/").at(-1)];
    const results = (await request.json()).map((item) => {
      try {
        return operation(item);
      } catch ({ code, message }) {
        return { error: { code, message } };
      }
    });
    return Response.json(results);
  };
}

const url = "https://limits.example.com/_tollgate";
const remoteOver = (fetch, options) =>
  new RemoteLimiter({ url, token: "t", policy: "api", fetch, ...options });

/** Limiters of each kind, with a function that decides over several keys, and one whose store fails. */
const kinds = {
  memory: {
    make: (options) => new RateLimiter(policy, { clock, ...options }),
    hitAll: async (hits) => hitAll(hits),
  },
  store: {
    make: (options) => new StoreLimiter(policy, { store: memoryStore(clock), clock, ...options }),
    hitAll: hitAllStored,
    failing: (options) =>
      new StoreLimiter(policy, { store: { get: () => assert.fail(failed), swap() {} }, clock, ...options }),
  },
  remote: {
    make: (options) => remoteOver(workerOf(new RateLimiter(policy, { clock })), options),
    hitAll: hitAllRemote,
    failing: (options) => remoteOver(async () => assert.fail(failed), options),
  },
};

const summary = ({ limiter, operation, key, cost, decision, allowed, by }) => [
  limiter,
  operation,
  key,
  cost,
  decision.allowed,
  allowed,
  by,
];

for (const [kind, { make, hitAll, failing }] of Object.entries(kinds))
  describe(kind, () => {
    test("hit, reserve and hitAll, once each; peek and settle not", async (t) => {
      const published = heard(t);
      const own = [];
      const limiter = make({ onDecision: (decision, message) => own.push([decision, message]) });
      const first = await limiter.hit("a");
      await limiter.peek("a");
      const reservation = await limiter.reserve("a", 2);
      assert.equal(reservation.allowed, false);
      const reserved = await limiter.reserve("b", 2);
      await reserved.settle(1);
      await limiter.hit("a", { api: 1 });
      await hitAll([
        { limiter, key: "c" },
        { limiter, key: "c" },
        { limiter, key: "d" },
      ]);
      await hitAll([
        { limiter, key: "c", cost: 1 },
        { limiter, key: "e" },
      ]);
      const expected = [
        [kind, "hit", "a", 1, true, true, "limiter"],
        [kind, "reserve", "a", 2, false, false, "limiter"],
        [kind, "reserve", "b", 2, true, true, "limiter"],
        [kind, "hit", "a", { api: 1 }, true, true, "limiter"],
        [kind, "hitAll", "c", 2, true, true, "limiter"],
        [kind, "hitAll", "d", 1, true, true, "limiter"],
        [kind, "hitAll", "c", 1, false, false, "limiter"],
        [kind, "hitAll", "e", 1, true, false, "limiter"],
      ];
      assert.deepEqual(
        own.map(([, message]) => summary(message)),
        expected,
      );
      // The Worker of this test is in memory, and publishes as well.
      assert.deepEqual(published.filter(({ limiter }) => limiter === kind).map(summary), expected);
      assert.equal(own[0][0], first);
      assert.equal(own[1][1].decision, reservation.decision);
      for (const [decision, message] of own) {
        assert.equal(decision, message.decision);
        assert.ok(message.duration >= 0);
        assert.equal("adapter" in message, false);
      }
    });

    test("a listener that throws or rejects changes no decision, and is logged", async (t) => {
      const error = t.mock.method(console, "error", () => {});
      for (const onDecision of [() => assert.fail("mine"), async () => assert.fail("mine")]) {
        const limiter = make({ onDecision });
        const decisions = [
          await limiter.hit("a"),
          (await limiter.reserve("a")).decision,
          await limiter.hit("a"),
        ];
        assert.deepEqual(
          decisions.map(({ allowed }) => allowed),
          [true, true, false],
        );
        await new Promise(setImmediate);
        assert.match(String(error.mock.calls.at(-1).arguments), /onDecision failed.*mine/);
      }
      assert.equal(error.mock.callCount(), 6);
    });

    test("a listener may use the limiter, and its own hits are not published", async () => {
      const seen = [];
      const nested = [];
      const limiter = make({
        onDecision(_, { key }) {
          seen.push(key);
          nested.push(limiter.hit("mine"), limiter.reserve("mine"));
        },
      });
      await limiter.hit("a");
      await Promise.all(nested);
      assert.deepEqual(seen, ["a"]);
      assert.equal((await limiter.peek("mine")).remaining, 0);
    });

    test("an onDecision that is no function is an error", () => {
      assert.throws(() => make({ onDecision: "log" }), {
        code: "invalid_option",
        message: /^onDecision: "log"/,
      });
    });

    if (failing === undefined) return;

    test("an error of the store, with its verdict, and the decision that was made without it", async (t) => {
      const [errors, decisions] = [heard(t, "tollgate:error"), heard(t)];
      await assert.rejects(failing({}).hit("a"), { code: "unanswered" });
      await assert.rejects(failing({}).reserve("a"), { code: "unanswered" });
      await failing({ onError: "allow" }).hit("b");
      await failing({ onError: "deny" }).reserve("c");
      if (kind === "store") {
        const fallback = new RateLimiter(policy, { clock });
        await failing({ fallback }).hit("d");
        await failing({ fallback }).reserve("e");
      }
      const byFallback = kind === "store";
      assert.deepEqual(
        errors.map(({ limiter, operation, key, error, verdict }) => [
          limiter,
          operation,
          key,
          error.code,
          verdict,
        ]),
        [
          [kind, "hit", "a", "unanswered", "throw"],
          [kind, "reserve", "a", "unanswered", "throw"],
          [kind, "hit", "b", "unanswered", "allow"],
          [kind, "reserve", "c", "unanswered", "deny"],
          ...(byFallback ? [[kind, "hit", "d", "unanswered", "fallback"]] : []),
          ...(byFallback ? [[kind, "reserve", "e", "unanswered", "fallback"]] : []),
        ],
      );
      assert.deepEqual(decisions.map(summary), [
        [kind, "hit", "b", 1, true, true, "onError"],
        [kind, "reserve", "c", 1, false, false, "onError"],
        ...(byFallback ? [[kind, "hit", "d", 1, true, true, "fallback"]] : []),
        ...(byFallback ? [[kind, "reserve", "e", 1, true, true, "fallback"]] : []),
      ]);
    });

    test("bad input is an error of the caller, and is not published", async (t) => {
      const [errors, decisions] = [heard(t, "tollgate:error"), heard(t)];
      await assert.rejects(failing({}).hit(7), { name: "TollgateError" });
      await assert.rejects(async () => make({}).hit("a", -1), { name: "TollgateError" });
      assert.deepEqual([...errors, ...decisions], []);
    });
  });

test("a throttle, which denies nobody, publishes nothing", async (t) => {
  const decisions = heard(t);
  const throttle = new Throttle({ algorithm: "concurrency", limit: 1 });
  assert.equal(await throttle.run(async () => 7), 7);
  const other = new Throttle(policy, { clock });
  await other.acquire();
  assert.deepEqual(decisions, []);
});

test("a subscriber that throws gets Node's uncaughtException, and the limiter goes on", () => {
  const program = fileURLToPath(new URL("programs/throwing-subscriber.mjs", import.meta.url));
  const output = execFileSync(process.execPath, [program], { encoding: "utf8", timeout: 60_000 });
  assert.deepEqual(JSON.parse(output), { decisions: [true, true, false], errors: ["mine", "mine", "mine"] });
});
