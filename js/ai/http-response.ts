import type { Delivered } from "./delivered.ts";

/** The fields of an event, or of a body, of the APIs for chat completions, responses, messages and embeddings. */
interface Message {
  readonly type?: unknown;
  readonly error?: unknown;
  readonly status?: unknown;
  readonly usage?: unknown;
  readonly choices?: unknown;
  readonly delta?: unknown;
  readonly message?: { readonly usage?: unknown } | null;
  readonly response?: { readonly usage?: unknown } | null;
  readonly content_block?: unknown;
  readonly content?: unknown;
  readonly output?: unknown;
}

interface Choice {
  readonly delta?: unknown;
  readonly message?: unknown;
  readonly text?: unknown;
  readonly finish_reason?: unknown;
}

/**
 * Takes the data of an event of a stream. Returns true for one that only says the usage of a chat completion, which is
 * sent where `stream_options.include_usage` is set.
 */
export function takeEvent(data: string, delivered: Delivered): boolean {
  if (data === "[DONE]") {
    delivered.end();
    return false;
  }
  const event = parsed(data);
  if (event === undefined) {
    delivered.add(data);
    return false;
  }
  const choices = Array.isArray(event.choices) ? (event.choices as readonly Choice[]) : [];
  const type = String(event.type ?? "");
  if (type === "error" || type === "response.failed" || event.error) delivered.hasFailed = true;
  for (const { delta, message, text } of choices) delivered.addTexts([delta, message, text]);
  if (type === "content_block_start") delivered.addTexts(event.content_block);
  else if (type.endsWith("delta")) delivered.addTexts(event.delta);
  delivered.say(event.usage ?? event.message?.usage ?? event.response?.usage, isLast(type, choices));
  return type === "" && choices.length === 0 && typeof event.usage === "object" && event.usage !== null;
}

/** Returns whether the usage of an event is that of the whole response. */
function isLast(type: string, choices: readonly Choice[]): boolean {
  if (type !== "") return type === "message_delta" || lastOfResponse.includes(type);
  return choices.every((choice) => choice.finish_reason != null);
}

const lastOfResponse: readonly string[] = [
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
];

/**
 * Takes the body of a response that is no stream. Returns false if the response is yet to come: one in the background is
 * fetched later.
 */
export function takeBody(text: string, delivered: Delivered): boolean {
  const body = parsed(text);
  if (body === undefined) {
    delivered.add(text);
    return true;
  }
  // Some providers report an error with status 200.
  if (body.error) delivered.hasFailed = true;
  const choices = Array.isArray(body.choices) ? (body.choices as readonly Choice[]) : [];
  for (const { message, text } of choices) delivered.addTexts([message, text]);
  delivered.addTexts([body.content, body.output]);
  delivered.say(body.usage, true);
  return body.status !== "queued" && body.status !== "in_progress";
}

function parsed(text: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Message) : undefined;
  } catch {
    return undefined;
  }
}
