import type { Delivered } from "./delivered.ts";
import type { EndpointKind } from "./endpoints.ts";
import { fieldsOf } from "./usage.ts";

/** The fields of an event, or of a body, of the APIs that `budgetFetch` reads. */
interface Message {
  readonly type?: unknown;
  readonly error?: unknown;
  readonly status?: unknown;
  readonly processing_status?: unknown;
  readonly id?: unknown;
  readonly usage?: unknown;
  readonly usageMetadata?: unknown;
  readonly meta?: unknown;
  readonly service_tier?: unknown;
  readonly tool_usage?: unknown;
  readonly choices?: unknown;
  readonly candidates?: unknown;
  readonly delta?: unknown;
  readonly message?: Message | null;
  readonly response?: Message | null;
  readonly content_block?: unknown;
  readonly content?: unknown;
  readonly output?: unknown;
  readonly data?: unknown;
  readonly result?: { readonly message?: Message };
}

interface Choice {
  readonly delta?: unknown;
  readonly message?: unknown;
  readonly text?: unknown;
  readonly content?: unknown;
  readonly finish_reason?: unknown;
  readonly finishReason?: unknown;
}

const listOf = (value: unknown): readonly Choice[] => (Array.isArray(value) ? value : []);

/** Returns the usage of a message, with what stands beside it; `undefined` if there is none. */
function usageOf(message: Message | null | undefined): unknown {
  const { usage, usageMetadata, meta, service_tier, tool_usage } = fieldsOf(message) as Message;
  const said = usage ?? usageMetadata ?? meta;
  if (typeof said !== "object" || said === null) return undefined;
  return service_tier === undefined && tool_usage === undefined
    ? said
    : { service_tier, tool_usage, ...said };
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
  const choices = [...listOf(event.choices), ...listOf(event.candidates)];
  const type = String(event.type ?? "");
  if (type === "error" || type === "response.failed" || event.error) delivered.hasFailed = true;
  for (const { delta, message, text, content } of choices)
    delivered.addTexts([delta, message, text, fieldsOf(content)["parts"]]);
  if (type === "content_block_start") delivered.addTexts(event.content_block);
  else if (type.endsWith("delta")) delivered.addTexts(event.delta);
  const usage = usageOf(event) ?? usageOf(event.message) ?? usageOf(event.response);
  delivered.say(usage, isLast(type, choices));
  return type === "" && choices.length === 0 && typeof event.usage === "object" && event.usage !== null;
}

/** Returns whether the usage of an event is that of the whole response. */
function isLast(type: string, choices: readonly Choice[]): boolean {
  if (type !== "") return type === "message_delta" || isEnd(type);
  return choices.every(({ finish_reason, finishReason }) => (finish_reason ?? finishReason) != null);
}

const isEnd = (type: string) => /[._](?:completed|done|incomplete|failed|cancelled)$/.test(type);

/** The states of a job that is not done. */
const pending: readonly unknown[] = ["queued", "in_progress", "validating", "finalizing", "cancelling"];

/** Returns the id of the job that a body tells of, if it is not done. */
export function pendingJob(text: string): string | undefined {
  const { status, processing_status, id } = parsed(text) ?? {};
  const isPending = pending.includes(status) || pending.includes(processing_status);
  return isPending && typeof id === "string" ? id : undefined;
}

/** Takes the body of a response that is no stream. Returns false if it is no JSON. */
export function takeBody(text: string, delivered: Delivered, kind: EndpointKind | undefined): boolean {
  const body = parsed(text);
  if (body === undefined) {
    delivered.add(text);
    return false;
  }
  // Gemini sends a stream as a list, unless it is asked for events.
  const messages = (Array.isArray(body) ? body : [body]) as readonly Message[];
  for (const message of messages) takeMessage(message, delivered, kind);
  return true;
}

const failed: readonly unknown[] = ["failed", "expired", "cancelled"];

function takeMessage(body: Message, delivered: Delivered, kind: EndpointKind | undefined): void {
  // Some providers report an error with status 200.
  if (body.error || failed.includes(body.status)) delivered.hasFailed = true;
  for (const { message, text, content } of [...listOf(body.choices), ...listOf(body.candidates)])
    delivered.addTexts([message, text, fieldsOf(content)["parts"]]);
  if (kind === "image") delivered.use("images", listOf(body.data).length);
  else delivered.addTexts([body.content, body.output]);
  delivered.say(usageOf(body), true);
}

/** Takes a line of the results of a batch: only messages that succeeded are billed. */
export function takeResult(line: string, delivered: Delivered): void {
  const message = parsed(line)?.result?.message;
  if (message !== undefined) delivered.addUsage(usageOf(message));
}

function parsed(text: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Message) : undefined;
  } catch {
    return undefined;
  }
}
