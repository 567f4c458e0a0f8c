import { request as ask } from "node:http";
import { text } from "node:stream/consumers";

// Loaded before a block: time passes only by timers, which ring at once, and the examples' hosts answer.
let now = Date.UTC(2026, 0, 1);
Date.now = () => now;

const timers = new Map();
let last = 0;

globalThis.setTimeout = (work, milliseconds = 0, ...args) =>
  handleOf(start({ work: () => work(...args), milliseconds }));
globalThis.clearTimeout = (timer) => timers.delete(Number(timer));

globalThis.setInterval = (work, milliseconds = 0, ...args) =>
  handleOf(start({ work: () => work(...args), milliseconds, repeats: true }));
globalThis.clearInterval = globalThis.clearTimeout;

function handleOf(timer) {
  const unref = () => {
    const entry = timers.get(timer);
    if (entry) entry.isIdle = true;
  };
  return { unref, [Symbol.toPrimitive]: () => timer };
}

function start(entry) {
  last += 1;
  timers.set(last, { ...entry, at: now + entry.milliseconds });
  setImmediate(ring);
  return last;
}

function ring() {
  // A timer that is not to keep the process alive does not keep time going.
  if (![...timers.values()].some(({ isIdle }) => !isIdle)) return;
  const [[timer, entry]] = [...timers].sort(([, one], [, other]) => one.at - other.at);
  now = Math.max(now, entry.at);
  timers.delete(timer);
  if (entry.repeats) {
    timers.set(timer, { ...entry, at: now + entry.milliseconds });
    setImmediate(ring);
  }
  // An idle timer does not ring instead of the timer that this turn is for.
  if (entry.isIdle) setImmediate(ring);
  entry.work();
}

const fetched = globalThis.fetch;
globalThis.fetch = (input, init) => {
  const request = new Request(input, init);
  const { hostname } = new URL(request.url);
  if (hostname === "limits.example.com") return limits(request);
  return hostname.endsWith(".example.com") ? Promise.resolve(Response.json({})) : fetched(request);
};

/** Asks the Worker that runs here, without fetch: that has timers of its own, which must not ring at once. */
async function limits(request) {
  const url = new URL(new URL(request.url).pathname, process.env.LIMITS_URL);
  const body = await request.text();
  const answer = await new Promise((resolve, reject) => {
    const { method, headers } = request;
    ask(url, { method, headers: Object.fromEntries(headers) }, resolve)
      .on("error", reject)
      .end(body);
  });
  return new Response(await text(answer), { status: answer.statusCode });
}
