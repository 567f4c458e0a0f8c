// Prints the error of a limiter where no wasm can be compiled. The arguments name the error's class and message.
const [, , name, message] = process.argv;
const classes = { CompileError: WebAssembly.CompileError, RangeError };
WebAssembly.Module = class {
  constructor() {
    throw new classes[name](message);
  }
};
const { RateLimiter } = await import("tollgate");
try {
  new RateLimiter({ algorithm: "fix_window", limit: 1, scale: "1s" });
} catch ({ name, code, message, cause }) {
  console.log(JSON.stringify({ name, code, message, cause: cause?.message }));
}
