import { checkFunctions } from "../checks.ts";
import { invalidField, TollgateError } from "../errors/error.ts";
import type { Awaitable } from "../guard/types.ts";
import type { Fetch, FetchResponse } from "../throttle/platform.ts";
import { Account } from "./account.ts";
import { wasSent } from "./broken.ts";
import type { Charge } from "./charge.ts";
import { BudgetDenied } from "./denied.ts";
import { deniedResponse, invalidResponse } from "./denied-response.ts";
import { jobIn, kindOf } from "./endpoints.ts";
import { pendingJob, takeBody, takeEvent } from "./http-response.ts";
import { Jobs } from "./jobs.ts";
import { metered } from "./metered.ts";
import { type BudgetOptions, readOptions } from "./options.ts";
import { lacksUsage, type ModelRequest, opaqueRequest, readModelRequest, withUsage } from "./request.ts";
import { readBody, withBody } from "./request-body.ts";
import { EventReader } from "./sse.ts";

/** What happens to a request that cannot be charged by the table of endpoints. */
export type OnUnknown = "error" | "count" | "pass";

/** A request that is not in the table of endpoints, or whose body cannot be read. */
export interface UnknownRequest {
  /** Its method, in capitals. */
  readonly method: string;
  /** Its address. */
  readonly url: string;
}

/** The options of a `fetch` with a budget. */
export interface FetchBudgetOptions extends BudgetOptions {
  /**
   * The result of a denied call: a response with status 429 that SDKs turn into their error (the default), the error
   * `BudgetDenied`, or the response that the function returns, if it returns one. A call that cannot be charged, such as one
   * of a model without a price, gets status 400, or with `"throw"` is the error `TollgateError`.
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
  /**
   * What happens to a request that may cost something, and is not in the table of endpoints or cannot be read: it is an
   * `"error"` (the default), it counts as a call of a model, reserved by the option `estimate` (`"count"`), or it is sent
   * without a charge (`"pass"`). A function decides for each.
   */
  readonly onUnknown?: OnUnknown | ((request: UnknownRequest) => Awaitable<OnUnknown>) | undefined;
  /** Sends the requests; the platform's `fetch` by default. */
  readonly fetch?: Fetch | undefined;
}

/** Where a request goes. */
interface Address {
  readonly method: string;
  readonly url: string;
  readonly path: string;
  readonly signal: AbortSignal | undefined;
}

/** A request as it is sent on. */
interface Outgoing extends Address {
  readonly args: Parameters<typeof fetch>;
  readonly request: ModelRequest;
  /** True if the event that says the usage was asked for here: it is not passed on. */
  readonly hidesUsage: boolean;
}

/**
 * Returns a `fetch` that charges each call of a model to a budget. It reads requests and responses of the APIs of OpenAI,
 * Anthropic and Gemini, and of all that are compatible with them, as JSON, as forms and as streams. The guide has the table
 * of endpoints. Requests that only read or delete, and those of endpoints that run no model, pass without a charge; any
 * other is an error, unless the option `onUnknown` says otherwise.
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
  const read = readOptions(options, ["onDenied", "includeUsage", "onUnknown", "fetch"]);
  const { onDenied = "respond", includeUsage = true, onUnknown = "error" } = read;
  if (!["respond", "throw"].includes(onDenied as string) && typeof onDenied !== "function")
    throw invalidField("invalid_option", "onDenied", onDenied, '"respond", "throw" or a function');
  if (!["error", "count", "pass"].includes(onUnknown as string) && typeof onUnknown !== "function")
    throw invalidField("invalid_option", "onUnknown", onUnknown, '"error", "count", "pass" or a function');
  if (typeof includeUsage !== "boolean")
    throw invalidField("invalid_option", "includeUsage", includeUsage, "a boolean");
  checkFunctions(read, ["fetch"]);
  const send: typeof fetch = (...args) => ((read.fetch as typeof fetch | undefined) ?? fetch)(...args);
  const account = new Account(read);
  const jobs = new Jobs();

  /** Returns what a call gets that is not sent. */
  const refused = async (error: unknown): Promise<Response> => {
    if (onDenied === "throw") throw error;
    if (error instanceof BudgetDenied)
      return (typeof onDenied === "function" && (await onDenied(error))) || deniedResponse(error);
    if (error instanceof TollgateError && callersOwn.includes(error.code)) return invalidResponse(error);
    throw error;
  };

  /** Returns a call to send, or the arguments of a request that passes without a charge. */
  const outgoingOf = async (
    address: Address,
    ...[input, init]: Parameters<typeof fetch>
  ): Promise<Outgoing | Parameters<typeof fetch>> => {
    const { path, method, url } = address;
    const kind = kindOf(path);
    if (kind === "free") return [input, init];
    const { args, text, form } = await readBody(input, init);
    let request = kind && readModelRequest(path, kind, { text, form });
    if (request === undefined) {
      const how = typeof onUnknown === "function" ? await onUnknown({ method, url }) : onUnknown;
      if (how === "pass") return args;
      if (how !== "count") throw unknownRequest(address, kind === undefined);
      request = readModelRequest(path, undefined, { text, form }) ?? opaqueRequest(path, text);
    }
    const hidesUsage = includeUsage && lacksUsage(path, request);
    return { ...address, args: hidesUsage ? withBody(args, withUsage(request)) : args, request, hidesUsage };
  };

  const fetched = async (address: Address, args: Parameters<typeof fetch>): Promise<Response> => {
    const readJob = address.method === "GET" ? jobs.reader(jobIn(address.path), address.path) : undefined;
    const response = await send(...args);
    const body = response.ok ? await readJob?.(response) : undefined;
    return body === undefined ? response : sameWith(response, body, address.url);
  };

  const budgeted = async (...given: Parameters<typeof fetch>): Promise<Response> => {
    const address = addressOf(...given);
    if (reading.includes(address.method)) return fetched(address, given);
    let outgoing: Outgoing;
    let charge: Charge;
    try {
      const found = await outgoingOf(address, ...given);
      if (Array.isArray(found)) return send(...(found as Parameters<typeof fetch>));
      outgoing = found as Outgoing;
      charge = await account.open({ ...outgoing.request, signal: address.signal });
    } catch (error) {
      return refused(error);
    }
    charge.isInBackground = outgoing.request.params["background"] === true;
    let response: Response;
    try {
      response = await send(...outgoing.args);
    } catch (error) {
      // The call has begun at the provider, perhaps.
      await (address.signal?.aborted || wasSent(error) ? charge.settleAborted() : charge.cancel());
      throw error;
    }
    return charged(response, charge, outgoing, jobs);
  };
  return budgeted as Fetch;
}

/** The codes of errors that are no failure of the limiter: to try the call again is of no use. */
const callersOwn: readonly string[] = ["invalid_request", "invalid_option", "invalid_key", "invalid_cost"];

/** The methods of requests that run no model. */
const reading: readonly string[] = ["GET", "HEAD", "OPTIONS", "DELETE"];

function addressOf(input: RequestInfo | URL, init: RequestInit | undefined): Address {
  // A `Request` may be one of another realm.
  const given = typeof input === "object" && "url" in input ? input : undefined;
  const url = given?.url ?? String(input);
  const signal = init?.signal ?? given?.signal ?? undefined;
  const method = (init?.method ?? given?.method ?? "GET").toUpperCase();
  return { method, url, path: pathOf(url), signal };
}

/** Returns the path of an address, which may be relative in a browser. */
function pathOf(url: string): string {
  try {
    return new URL(url, "http://localhost").pathname;
  } catch {
    return "";
  }
}

const unknownRequest = ({ method, url, path }: Address, isElsewhere: boolean) =>
  new TollgateError(
    "invalid_request",
    isElsewhere
      ? `fetch: ${method} ${url.replace(/[?#].*/s, "")} is not in the table of endpoints, so its cost is unknown; set the option onUnknown to "count" or "pass", or to a function`
      : `fetch: the body for ${method} ${path} cannot be read, so its cost is unknown; send JSON or a form, or set the option onUnknown`,
  );

/** Returns the response that settles the charge when it has been read. */
async function charged(
  response: Response,
  charge: Charge,
  { url, request, signal, hidesUsage }: Outgoing,
  jobs: Jobs,
): Promise<Response> {
  if (!response.ok) {
    await charge.cancel();
    return response;
  }
  const { kind, params } = request;
  const { delivered } = charge;
  const type = response.headers.get("Content-Type") ?? "";
  const isJson = /\bjson\b/i.test(type);
  const isStream = /\bevent-stream\b/i.test(type) || (params["stream"] === true && !isJson);
  if (response.body !== null && isStream) {
    const onEvent = (data: string) => !(takeEvent(data, delivered) && hidesUsage);
    const events = new EventReader(onEvent, delivered.add, hidesUsage);
    return sameWith(response, metered<Uint8Array>(response.body, charge, events, signal), url);
  }
  if (!isJson && kind !== "text" && kind !== "input") {
    // Sound, for example: nothing says its tokens.
    await charge.settleInFull();
    return response;
  }
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    await (signal?.aborted ? charge.settleAborted() : charge.settleInFull());
    throw error;
  }
  const id = pendingJob(text);
  if (id !== undefined) jobs.add(id, { charge, isBatch: kind === "batch" });
  else if (kind === "job" || kind === "batch") await charge.settleInFull();
  else await (takeBody(text, delivered, kind) ? charge.settleDelivered() : charge.settleAtLeastReserved());
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
