// A hit that waits for a lease is woken or dropped, also if the request that renews is cancelled.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type LeaseCore, Leases } from "../../js/lease/leases.ts";

const allowed = "1 1 10 9 0 0 0 0 0";
const [waits, renews] = [".", "+,0,3,1000"];
const ask = async () => allowed;
const background = () => {};

let now = 1_000;
let step = waits;
let spent: string[] = [];

const core: LeaseCore = {
  denied: () => undefined,
  hit: () => step,
  spend: (key) => {
    spent.push(key);
    return allowed;
  },
  replied: () => 0,
  failed: () => {},
  giveBack: () => undefined,
};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  spent = [];
});

afterEach(() => {
  vi.useRealTimers();
});

/** Hits a key, which waits for a renewal. */
function wait(leases: Leases, key: string): void {
  step = waits;
  void leases.hit(key, 1, ask, background);
}

/** Renews the lease of a key, which wakes the hits that wait for it. */
async function renew(leases: Leases, key: string): Promise<void> {
  step = renews;
  expect(await leases.hit(key, 1, ask, background)).toBe(allowed);
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

it("a waiting hit whose request was cancelled is dropped, and others are woken", async () => {
  for (const next of ["a", "other"]) {
    const leases = new Leases(core, () => now);
    wait(leases, "a");
    // The timers of a cancelled request never fire.
    vi.clearAllTimers();
    now += 101;
    wait(leases, next);
    await renew(leases, "a");
    expect(spent.splice(0)).toEqual(next === "a" ? ["a"] : []);
    now += 1;
    wait(leases, "late");
    now += 40;
    wait(leases, "later");
    await renew(leases, "late");
    await renew(leases, "later");
    expect(spent.splice(0)).toEqual(["late", "later"]);
  }
});
