// The sketch of the most denied keys stays within its documented error, whatever the keys are.

import assert from "node:assert/strict";
import test from "node:test";
import { SpaceSaving } from "../../js/metrics/space-saving.ts";
import fc from "../lib/properties.mjs";

/** Streams of few keys and of many, in bursts and mixed. */
const streams = fc.array(
  fc.tuple(fc.oneof(fc.nat(5), fc.nat(60), fc.nat(100_000)), fc.integer({ min: 1, max: 9 })),
  { maxLength: 300 },
);

test("no count is too low or off by more than n / m, and no frequent key is missing", () =>
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), streams, (most, stream) => {
      const sketch = new SpaceSaving(most);
      const exact = new Map();
      let added = 0;
      for (const [key, times] of stream)
        for (let time = 0; time < times; time++) {
          sketch.add(`${key}`);
          exact.set(`${key}`, (exact.get(`${key}`) ?? 0) + 1);
          added++;
        }
      const top = sketch.top(most);
      assert.ok(top.length <= most);
      assert.equal(new Set(top.map(({ key }) => key)).size, top.length);
      assert.equal(
        top.reduce((sum, { count }) => sum + count, 0),
        added,
      );
      for (const [place, { key, count, error }] of top.entries()) {
        const truth = exact.get(key) ?? 0;
        assert.ok(count - error <= truth && truth <= count, `${key}: ${count} - ${error}, and is ${truth}`);
        assert.ok(error <= added / most);
        assert.ok(place === 0 || top[place - 1].count >= count);
      }
      const known = new Set(top.map(({ key }) => key));
      for (const [key, truth] of exact) assert.ok(truth <= added / most || known.has(key), key);
      if (exact.size <= most) assert.ok(top.every(({ error }) => error === 0));
    }),
    { numRuns: 1_000 },
  ));

test("sketches that are joined keep what each of them knows", () =>
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.array(streams, { maxLength: 6 }), (most, parts) => {
      const joined = new SpaceSaving(most);
      const exact = new Map();
      for (const stream of parts) {
        const part = new SpaceSaving(most);
        for (const [key, times] of stream) {
          part.add(`${key}`, times);
          exact.set(`${key}`, (exact.get(`${key}`) ?? 0) + times);
        }
        for (const { key, count, error } of part.top(most)) joined.add(key, count, error);
      }
      const added = [...exact.values()].reduce((sum, times) => sum + times, 0);
      const top = joined.top(most);
      assert.equal(
        top.reduce((sum, { count }) => sum + count, 0),
        added,
      );
      for (const { key, count, error } of top) assert.ok(count - error <= (exact.get(key) ?? 0), key);
      // Each part may have lost as much of a key as its smallest count, and the joined sketch as much again.
      const known = new Map(top.map(({ key, count }) => [key, count]));
      for (const [key, truth] of exact) assert.ok(truth - (known.get(key) ?? 0) <= (2 * added) / most, key);
      if (exact.size <= most) for (const { key, count } of top) assert.equal(count, exact.get(key));
    }),
    { numRuns: 1_000 },
  ));
