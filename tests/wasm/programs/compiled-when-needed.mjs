// Prints how many modules were compiled after the import, and after two limiters were made.
let compiled = 0;
// A proxy, so that a module is still an instance of it.
const { Module } = WebAssembly;
WebAssembly.Module = new Proxy(Module, {
  construct(target, given) {
    compiled += 1;
    return new target(...given);
  },
});
const { RateLimiter } = await import("tollgate");
const before = compiled;
for (const name of ["a", "b"]) new RateLimiter({ algorithm: "fix_window", limit: 1, scale: "1s", name });
console.log(JSON.stringify([before, compiled]));
