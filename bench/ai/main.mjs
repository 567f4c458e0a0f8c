import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { generateText, streamText, wrapLanguageModel } from "ai";
import OpenAI from "openai";
import { RateLimiter } from "tollgate";
import { budget, budgetFetch, usd } from "tollgate/ai";
import { circumstances, median, save, table } from "../results.mjs";

const events = 1_000;
const rounds = 11;
const { values } = parseArgs({ options: { save: { type: "boolean" } } });

const server = fork(fileURLToPath(new URL("server.mjs", import.meta.url)), [String(events)]);
const [port] = await once(server, "message");
const baseURL = `http://127.0.0.1:${port}`;

const limiter = new RateLimiter([
  { name: "requests", algorithm: "fix_window", limit: 1e9, scale: "1d" },
  { name: "tokens", algorithm: "fix_window", limit: 1e12, scale: "1d" },
  { name: "usd", algorithm: "fix_window", limit: usd("1000000"), scale: "month" },
  { name: "running", algorithm: "concurrency", limit: 100 },
]);
const prices = { "gpt-5": { input: "1.25", cachedInput: "0.125", output: "10" } };
const options = { limiter, key: "user:42", prices };
const limited = budgetFetch(options);

const prompt = "word ".repeat(400);
const body = { model: "gpt-5", messages: [{ role: "user", content: prompt }], max_tokens: 500 };
const sent = (stream) => ({
  method: "POST",
  body: JSON.stringify({ ...body, stream, ...(stream && { stream_options: { include_usage: true } }) }),
});
const [whole, streamed] = [sent(false), sent(true)];

async function readAll(response) {
  let bytes = 0;
  for await (const chunk of response.body) bytes += chunk.length;
  return bytes;
}

const usage = { inputTokens: { total: 412 }, outputTokens: { total: 400 } };
const end = { usage, finishReason: { unified: "stop", raw: "stop" } };
const delta = { type: "text-delta", id: "1", delta: " word" };
const parts = [
  { type: "stream-start", warnings: [] },
  { type: "text-start", id: "1" },
  ...Array(events).fill(delta),
  { type: "text-end", id: "1" },
  { type: "finish", ...end },
];
const model = {
  specificationVersion: "v4",
  provider: "none",
  modelId: "gpt-5",
  supportedUrls: {},
  doGenerate: async () => ({ content: [{ type: "text", text: prompt }], warnings: [], ...end }),
  doStream: async () => ({ stream: ReadableStream.from(parts) }),
};
const limitedModel = wrapLanguageModel({ model, middleware: budget(options) });

const clientOf = (fetch) => new OpenAI({ apiKey: "key", baseURL, fetch });

/** A measured case: its calls, the units of each, and its work without a budget and with one. */
const subjects = [
  [
    "`fetch`, a call",
    300,
    1,
    fetch,
    limited,
    (send) => send(`${baseURL}/chat/completions`, whole).then(readAll),
  ],
  [
    "`fetch`, an event of a stream",
    20,
    events,
    fetch,
    limited,
    (send) => send(`${baseURL}/chat/completions`, streamed).then(readAll),
  ],
  [
    "OpenAI's SDK, an event of a stream",
    20,
    events,
    clientOf(fetch),
    clientOf(limited),
    async (client) => {
      for await (const _ of await client.chat.completions.create({ ...body, stream: true }));
    },
  ],
  ["AI SDK, `generateText`", 300, 1, model, limitedModel, (model) => generateText({ model, prompt })],
  [
    "AI SDK, a part of `streamText`",
    10,
    events,
    model,
    limitedModel,
    (model) => streamText({ model, prompt }).consumeStream(),
  ],
];

/** The processor's time of a unit, in microseconds: the provider is another process. */
async function measured(subject, calls, units, work) {
  const before = process.cpuUsage();
  for (let call = 0; call < calls; call += 1) await work(subject);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls / units;
}

const rows = [];
for (const [name, calls, units, plain, budgeted, work] of subjects) {
  process.stderr.write(`  ${name}\n`);
  const pairs = [];
  for (let round = -1; round < rounds; round += 1) {
    const pair = [await measured(plain, calls, units, work), await measured(budgeted, calls, units, work)];
    // The first one warms up.
    if (round >= 0) pairs.push(pair);
  }
  const of = (figure) => median(pairs.map(figure));
  const micros = (time) => `${time.toFixed(time < 10 ? 2 : 0)} µs`;
  rows.push([
    name,
    micros(of(([without]) => without)),
    micros(of(([, with_]) => with_)),
    `${of(([without, with_]) => with_ / without).toFixed(2)}×`,
  ]);
}
server.disconnect();

const text = [
  circumstances(["ai", "openai"]),
  `The processor's time of one process, in ${rounds} alternating rounds; the median of each. A call has a prompt of 2,000 characters and four policies in memory; a stream has ${events.toLocaleString("en")} events. The provider is a process that sends them at once; the models of the AI SDK send nothing.`,
  table(["", "without", "with a budget", "ratio"], rows),
].join("\n\n");
console.log(text);
if (values.save) save("ai", "Language models", `Reproduce with \`npm run bench -- ai\`.\n\n${text}`);
