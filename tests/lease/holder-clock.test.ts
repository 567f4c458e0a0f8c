// The clock of a holder of leases never runs slower than the clocks it is made of.

import { afterEach, expect, it, vi } from "vitest";
import { holderClock } from "../../js/lease/holder-clock.ts";

/** The monotonic clock, which has fractions, and the wall clock, which has none. */
const time = { monotonic: 0, wall: 1_800_000_000_000.4 };

function advance(monotonic: number, wall = monotonic): void {
  time.monotonic += monotonic;
  time.wall += wall;
}

function startClock(): () => number {
  vi.spyOn(performance, "now").mockImplementation(() => time.monotonic);
  vi.spyOn(Date, "now").mockImplementation(() => Math.floor(time.wall));
  return holderClock();
}

afterEach(() => {
  vi.restoreAllMocks();
});

it.each([0.01, 0.3, 0.9, 1.7, 30])("runs at the speed of its clocks when it is read every %f ms", (step) => {
  const clock = startClock();
  const start = clock();
  for (let elapsed = 0; elapsed < 1_000; elapsed += step) {
    advance(step);
    clock();
  }
  expect(Math.abs(clock() - start - 1_000)).toBeLessThanOrEqual(step + 2);
});

it("advances by the clock that advances more", () => {
  const clock = startClock();
  const start = clock();
  expect(start).toBe(1);
  advance(0, 500);
  expect(clock()).toBe(start + 500);
  advance(300, 0);
  expect(clock()).toBe(start + 800);
  // Set back by an hour, and ahead again.
  advance(10, -3_600_000);
  expect(clock()).toBe(start + 810);
  advance(10, 3_600_000);
  expect(clock()).toBe(start + 3_600_810);
});
