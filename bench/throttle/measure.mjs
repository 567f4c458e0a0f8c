import { hrtime, memoryUsage } from "node:process";
import { subjects } from "./subjects.mjs";
import { run, time } from "./time.mjs";

const [name, calls, every] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

const used = () => {
  for (let pass = 0; pass < 4; pass++) globalThis.gc();
  const { heapUsed, external } = memoryUsage();
  return heapUsed + external;
};
const milliseconds = async (work) => {
  const start = hrtime.bigint();
  await work();
  return Number(hrtime.bigint() - start) / 1e6;
};

const began = time.now;
const passed = new Float64Array(calls);
let done = 0;
let misplaced = 0;
const call = (await subjects[name](every))((number) => {
  if (number !== done) misplaced += 1;
  passed[done++] = time.now;
});
const before = used();
const queueing = await milliseconds(() => {
  for (let number = 0; number < calls; number += 1) call(number);
});
const memory = (used() - before) / calls;
const draining = await milliseconds(() => run(() => done === calls));

/** Gaps that are shorter than asked for let too many through; whatever is beyond the last due time is lost. */
let early = 0;
for (let number = 1; number < calls; number += 1) if (passed[number] - passed[number - 1] < every) early += 1;
const late = passed[calls - 1] - began - (calls - 1) * every;
console.log(JSON.stringify({ queueing, draining, memory, early, late, misplaced }));
