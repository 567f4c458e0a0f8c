// The heap of waiters and events is in order, whatever is removed, and its comparisons are counted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Heap } from "../../js/throttle/heap.ts";
import { Line } from "../../js/throttle/line.ts";
import fc from "../lib/properties.mjs";

const counting = () => {
  const counted = { comparisons: 0 };
  counted.heap = new Heap((one, other) => {
    counted.comparisons += 1;
    return one.value < other.value;
  });
  return counted;
};

test("against a sorted list: any additions and removals, from anywhere", () => {
  const action = fc.record({ value: fc.nat(20), removes: fc.boolean(), which: fc.nat() });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 100 }), (actions) => {
      const { heap } = counting();
      const model = [];
      for (const { value, removes, which } of actions) {
        if (removes && model.length > 0) {
          const [item] = model.splice(which % model.length, 1);
          heap.remove(item);
          assert.equal(item.place, -1);
          // A second time it is not there.
          heap.remove(item);
        } else {
          const item = { value, place: -1 };
          model.push(item);
          heap.push(item);
        }
        const least = model.length === 0 ? undefined : Math.min(...model.map((each) => each.value));
        assert.equal(heap.first()?.value, least);
      }
      const places = new Set(model.map(({ place }) => place));
      assert.deepEqual(places, new Set(model.keys()));
    }),
    { numRuns: 2_000 },
  );
});

const orders = {
  ascending: (count) => Array.from({ length: count }, (_, at) => at),
  descending: (count) => Array.from({ length: count }, (_, at) => count - at),
  // Steps by a number that shares no factor with the count come to all of them.
  mixed: (count) => Array.from({ length: count }, (_, at) => (at * 61_803) % count),
};

for (const [name, values] of Object.entries(orders)) {
  test(`100,000 ${name}: comparisons grow as n log n`, (t) => {
    const count = 100_000;
    const counted = counting();
    for (const value of values(count)) counted.heap.push({ value, place: -1 });
    const pushing = counted.comparisons;
    const seen = [];
    for (let first = counted.heap.first(); first !== undefined; first = counted.heap.first()) {
      seen.push(first.value);
      counted.heap.remove(first);
    }
    assert.deepEqual(
      seen,
      values(count).sort((one, other) => one - other),
    );
    t.diagnostic(`${pushing / count} to add one, ${(counted.comparisons - pushing) / count} to remove one`);
    assert.ok(counted.comparisons <= 2 * count * Math.log2(count), `${counted.comparisons} comparisons`);
  });
}

test("a line against a sorted list: any arrivals and departures", () => {
  const action = fc.record({
    priority: fc.constantFrom(0, -0, 1, -1, 0.5, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
    leaves: fc.boolean(),
    which: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const line = new Line("key");
      const model = [];
      for (const { priority, leaves, which } of actions) {
        if (leaves && model.length > 0) {
          const [waiter] = model.splice(which % model.length, 1);
          line.remove(waiter);
          line.remove(waiter);
          const { rank, previous, next } = waiter;
          assert.deepEqual([rank, previous, next], [undefined, undefined, undefined]);
        } else {
          const waiter = { priority };
          model.push(waiter);
          line.add(waiter);
        }
        // The first of those with the highest priority, since the list is in order of arrival.
        const highest = Math.max(...model.map((each) => each.priority));
        assert.equal(
          line.first(),
          model.find((each) => each.priority === highest),
        );
      }
    }),
    { numRuns: 2_000 },
  );
});
