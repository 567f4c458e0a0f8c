import { once } from "node:events";
import { createServer } from "node:http";

// A provider that only sends: a whole response, or a stream with so many events, each a write of its own.

const usage = { prompt_tokens: 12, completion_tokens: 400, total_tokens: 412 };
const chunk = (choices, more) =>
  `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "gpt-5", choices, ...more })}\n\n`;
const event = chunk([{ index: 0, delta: { content: " word" }, finish_reason: null }]);
const message = { role: "assistant", content: "word ".repeat(400) };
const whole = JSON.stringify({
  id: "1",
  object: "chat.completion",
  created: 1,
  model: "gpt-5",
  choices: [{ index: 0, message, finish_reason: "stop" }],
  usage,
});
const events = Number(process.argv[2]);

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const part of request) chunks.push(part);
  if (!JSON.parse(Buffer.concat(chunks).toString()).stream) {
    response.setHeader("Content-Type", "application/json");
    response.end(whole);
    return;
  }
  response.setHeader("Content-Type", "text/event-stream");
  for (let at = 0; at < events; at += 1) if (!response.write(event)) await once(response, "drain");
  response.write(chunk([], { usage }));
  response.end("data: [DONE]\n\n");
});

server.listen(0, "127.0.0.1", () => process.send(server.address().port));
process.on("disconnect", () => process.exit());
