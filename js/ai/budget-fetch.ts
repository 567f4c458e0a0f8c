import { checkFunctions } from "../checks.ts";
import { invalidField } from "../errors/error.ts";
import type { Awaitable } from "../guard/types.ts";
import type { Fetch, FetchResponse } from "../throttle/platform.ts";
import { Account } from "./account.ts";
import type { Charge } from "./charge.ts";
import { BudgetDenied } from "./denied.ts";
import { deniedResponse } from "./denied-response.ts";
import { takeBody, takeEvent } from "./http-response.ts";
import { metered } from "./metered.ts";
import { type BudgetOptions, readOptions } from "./options.ts";
import { lacksUsage, type ModelRequest, readModelRequest, withUsage } from "./request.ts";
import { EventReader } from "./sse.ts";

/** The options of a `fetch` with a budget. */
export interface FetchBudgetOptions extends BudgetOptions {
  /**
   * The result of a denied call: a response with status 429 that SDKs turn into their error (the default), the error
   * `BudgetDenied`, or the response that the function returns, if it returns one.
   */
  readonly onDenied?:
    | "respond"
    | "throw"
    | ((denied: BudgetDenied) => Awaitable<FetchResponse | undefined>)
    | undefined;
  /**
   * Streams of chat completions are asked for their usage where the request leaves that open, unless this is false. The
   * event that says it is not passed on.
   */
  readonly includeUsage?: boolean | undefined;
  /** Sends the requests; the platform's `fetch` by default. */
  readonly fetch?: Fetch | undefined;
}

/** A request as it is sent on. */
interface Outgoing {
  readonly url: string;
  readonly args: Parameters<typeof fetch>;
  readonly request: ModelRequest;
  readonly signal: AbortSignal | undefined;
  /** True if the event that says the usage was asked for here: it is not passed on. */
  readonly hidesUsage: boolean;
}

/**
 * Returns a `fetch` that charges each call of a model to a budget. It reads requests and responses of the APIs of OpenAI
 * (chat completions, responses, embeddings) and Anthropic (messages), and of all that are compatible with them, as JSON
 * and as streams. Other requests pass without a charge.
 *
 * @throws TollgateError if an option is invalid.
 *
 * @example
 * ```js
 * import OpenAI from "openai";
 * import { RateLimiter } from "tollgate";
 * import { budgetFetch, usd } from "tollgate/ai";
 *
 * const limiter = new RateLimiter({ name: "usd", algorithm: "fix_window", limit: usd("20"), scale: "month" });
 * const prices = { "gpt-5": { input: "1.25", cachedInput: "0.125", output: "10" } };
 * const fetch = budgetFetch({ limiter, key: "team:7", prices });
 * const client = new OpenAI({ apiKey: "sk-…", fetch });
 * ```
 */
export function budgetFetch(options: FetchBudgetOptions): Fetch {
  const read = readOptions(options, ["onDenied", "includeUsage", "fetch"]);
  const { onDenied = "respond", includeUsage = true } = read;
  if (!["respond", "throw"].includes(onDenied as string) && typeof onDenied !== "function")
    throw invalidField("invalid_option", "onDenied", onDenied, '"respond", "throw" or a function');
  if (typeof includeUsage !== "boolean")
    throw invalidField("invalid_option", "includeUsage", includeUsage, "a boolean");
  checkFunctions(read, ["fetch"]);
  const send: typeof fetch = (...args) => ((read.fetch as typeof fetch | undefined) ?? fetch)(...args);
  const account = new Account(read);

  const denied = async (error: BudgetDenied): Promise<Response> => {
    if (onDenied === "throw") throw error;
    return (typeof onDenied === "function" && (await onDenied(error))) || deniedResponse(error);
  };

  const budgeted = async (...[input, init]: Parameters<typeof fetch>): Promise<Response> => {
    const outgoing = await outgoingOf(input, init, includeUsage);
    if (Array.isArray(outgoing)) return send(...(outgoing as Parameters<typeof fetch>));
    const { args, request, signal } = outgoing as Outgoing;
    let charge: Charge;
    try {
      charge = await account.open({ ...request, signal });
    } catch (error) {
      if (error instanceof BudgetDenied) return denied(error);
      throw error;
    }
    let response: Response;
    try {
      response = await send(...args);
    } catch (error) {
      // A call that the caller aborted has begun at the provider, perhaps.
      await (signal?.aborted ? charge.settleDelivered() : charge.cancel());
      throw error;
    }
    return charged(response, charge, outgoing as Outgoing);
  };
  return budgeted as Fetch;
}

/** Returns the request to send with its body read, or the arguments to send of one that is no call of a model. */
async function outgoingOf(
  input: RequestInfo | URL,
  init: RequestInit | undefined,
  includeUsage: boolean,
): Promise<Outgoing | Parameters<typeof fetch>> {
  const given = input instanceof Request ? input : undefined;
  const method = init?.method ?? given?.method ?? "GET";
  if (method.toUpperCase() !== "POST") return [input, init];
  const url = given?.url ?? String(input);
  const signal = init?.signal ?? given?.signal;
  let args: Parameters<typeof fetch> = [input, init];
  let text = textOf(init?.body);
  if (text === undefined) {
    const headers = new Headers(init?.headers ?? given?.headers);
    if (!/\bjson\b/i.test(headers.get("Content-Type") ?? "")) return args;
    const whole = new Request(input, init);
    const copy = whole.clone();
    text = await whole.text();
    args = [copy];
  }
  const request = readModelRequest(url, text);
  if (request === undefined) return args;
  const hidesUsage = includeUsage && lacksUsage(url, request);
  if (hidesUsage) args = [args[0], { ...args[1], ...withBody(args[1], withUsage(request)) }];
  return { url, args, request, signal: signal ?? undefined, hidesUsage };
}

/** Returns the text of a body that is in memory; `undefined` for any other. */
function textOf(body: unknown): string | undefined {
  if (typeof body === "string") return body;
  const isBytes = body instanceof ArrayBuffer || ArrayBuffer.isView(body);
  return isBytes ? new TextDecoder().decode(body as BufferSource) : undefined;
}

/** Returns a body, and the headers without the length of the former one. */
function withBody(init: RequestInit | undefined, body: string): RequestInit {
  if (init?.headers === undefined) return { body };
  const headers = new Headers(init.headers);
  headers.delete("Content-Length");
  return { body, headers };
}

/** Returns the response that settles the charge when it has been read. */
async function charged(
  response: Response,
  charge: Charge,
  { url, signal, hidesUsage }: Outgoing,
): Promise<Response> {
  if (!response.ok) {
    await charge.cancel();
    return response;
  }
  const type = response.headers.get("Content-Type") ?? "";
  const { delivered } = charge;
  if (response.body !== null && /\bevent-stream\b/i.test(type)) {
    const onEvent = (data: string) => !(takeEvent(data, delivered) && hidesUsage);
    const events = new EventReader(onEvent, delivered.add, hidesUsage);
    return sameWith(response, metered<Uint8Array>(response.body, charge, events, signal), url);
  }
  if (!/\bjson\b/i.test(type)) {
    // Audio, for example: nothing says its tokens.
    await charge.settleInFull();
    return response;
  }
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    await charge.settleInFull();
    throw error;
  }
  await (takeBody(text, delivered) ? charge.settleDelivered() : charge.settleInFull());
  return sameWith(response, text, url);
}

/** Returns a response with another body. Its length is another one, and it is no longer compressed. */
function sameWith(response: Response, body: BodyInit, url: string): Response {
  const headers = new Headers(response.headers);
  headers.delete("Content-Encoding");
  headers.delete("Content-Length");
  const { status, statusText } = response;
  const same = new Response(body, { status, statusText, headers });
  Object.defineProperty(same, "url", { value: response.url || url });
  return same;
}
