import { request as ask } from "node:http";
import { text } from "node:stream/consumers";

// Loaded before a block: time passes only by timers, which ring at once, and the examples' hosts answer.
let now = Date.UTC(2026, 0, 1);
Date.now = () => now;

const timers = new Map();
let last = 0;

globalThis.setTimeout = (work, milliseconds = 0, ...args) => {
  last += 1;
  timers.set(last, { at: now + milliseconds, work: () => work(...args) });
  setImmediate(ring);
  return last;
};
globalThis.clearTimeout = (timer) => timers.delete(timer);

function ring() {
  const [first] = [...timers].sort(([, one], [, other]) => one.at - other.at);
  if (first === undefined) return;
  const [timer, { at, work }] = first;
  timers.delete(timer);
  now = Math.max(now, at);
  work();
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
