// Prints how often the memory grows for a million keys.
import { now } from "./lib/now.mjs";

let memory;
const { Instance } = WebAssembly;
WebAssembly.Instance = new Proxy(Instance, {
  construct(target, given) {
    const made = new target(...given);
    memory = made.exports.memory;
    return made;
  },
});
const { RateLimiter } = await import("tollgate");
const limiter = new RateLimiter({ algorithm: "fix_window", limit: 5, scale: "1h" }, { clock: () => now });
let [grown, buffer] = [0, memory?.buffer];
for (let key = 0; key < 1_000_000; key++) {
  limiter.hit(key);
  if (memory.buffer !== buffer) [grown, buffer] = [grown + 1, memory.buffer];
}
console.log(JSON.stringify({ grown, pages: memory.buffer.byteLength / 65_536 }));
