// Prints how often the memory grows while many keys are made: by cold operations, by a restore, and in the instance that
// replaces one after a trap, with what is left of the keys.
import { now } from "./lib/now.mjs";

let memory;
let crashes = false;
const { Instance } = WebAssembly;
WebAssembly.Instance = new Proxy(Instance, {
  construct(target, given) {
    const { exports } = new target(...given);
    memory = exports.memory;
    const peek = (...args) => (crashes ? exports.crash() : exports.hit_with(...args));
    return { exports: { ...exports, hit_with: peek } };
  },
});
const { RateLimiter } = await import("tollgate");
const made = (...rest) => new RateLimiter(...rest, { clock: () => now, maxKeys: 2_000_000 });
const policy = { name: "api", algorithm: "fix_window", limit: 5, scale: "1h" };
const keys = 200_000;

/** Does something with each key, and returns how often the memory grew meanwhile. */
function growths(work, count = keys) {
  let [grown, buffer] = [0, memory?.buffer];
  for (let key = 0; key < count; key += 1) {
    work(key);
    if (memory.buffer !== buffer) [grown, buffer] = [grown + 1, memory.buffer];
  }
  return grown;
}

const found = {};
const limiter = made(policy);
found.inc = growths((key) => limiter.inc(key, key % 5));
const set = made(policy);
found.set = growths((key) => set.set(key, key % 5));
const excepted = made(policy);
found.except = growths((key) => excepted.except(key, { api: { limit: 9 } }, { for: "1h" }), keys / 10);
const reserved = made(policy);
found.reserve = growths((key) => reserved.reserve(key), keys / 10);

// The memory is read at each key of a restore: the keys of the snapshot tell when.
const { prototype } = WebAssembly.Memory;
const { get } = Object.getOwnPropertyDescriptor(prototype, "buffer");
const sizes = new Set();
Object.defineProperty(prototype, "buffer", {
  get() {
    const buffer = get.call(this);
    sizes.add(buffer.byteLength);
    return buffer;
  },
});
const again = RateLimiter.restore(limiter.snapshot(), { clock: () => now, maxKeys: 2_000_000 });
found.restore = sizes.size - 1;

crashes = true;
try {
  again.peek(1);
} catch {
  crashes = false;
}
sizes.clear();
found.first = again.get(4);
found.recovery = sizes.size - 1;
found.differences = 0;
for (let key = 0; key < keys; key += 1) found.differences += Number(again.get(key) !== key % 5);
found.size = again.size;
console.log(JSON.stringify(found));
