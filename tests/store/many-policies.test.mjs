// Many policies on one key of an own store, each in limiters of its own: each admits exactly its limit, and one row too many is
// an error that changes nothing.

import { test } from "node:test";
import { StoreLimiter } from "tollgate/store";
import {
  counts,
  eachAlone,
  eachInLists,
  limitersUnder,
  oneTooMany,
  policiesOf,
} from "../lib/many-policies.mjs";
import { memoryStore } from "./lib/stores.mjs";

/** A key in a store, hit by a limiter for each list of policies. */
function keyUnder(policies) {
  const store = memoryStore();
  return limitersUnder(policies, (own) => new StoreLimiter(own, { store }));
}

for (const count of counts) {
  test(`${count} policies, one named by each call, each admit their limit`, () =>
    eachAlone(count, keyUnder(policiesOf(count)).hit));

  test(`${count} policies in lists that share them each admit their limit`, () =>
    eachInLists(count, keyUnder(policiesOf(count)).hit));
}

test("one row too many is an error that changes nothing", () =>
  oneTooMany(keyUnder(policiesOf(counts.at(-1)))));
