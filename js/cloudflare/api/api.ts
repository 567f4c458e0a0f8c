import { forJson } from "../../http/json-decision.ts";
import { type Numbers, named, numberIn } from "../../wasm/decision-numbers.ts";
import { type Operation, operations, resultFields } from "../../wasm/operations.ts";
import type { TollgateEnv } from "../env.ts";
import { admit, preflight } from "../gateway/cors.ts";
import type { Isolate, Item } from "../gateway/isolate.ts";
import { askWatch, idIn, Unanswered, wrongId } from "../object/ask.ts";
import { brokenKey } from "../object/checks.ts";
import type { Answer, ErrorInfo } from "../object/decision.ts";
import { callObject, callObjectInJson } from "../object/object-call.ts";
import { problem } from "../problem.ts";
import { openapi } from "./openapi.ts";
import { closedTo } from "./token.ts";

/** A hundred items fit in this, however long their keys, their ids and their lists of policies are. */
const largestBody = 2 * 1024 * 1024;

/** The code of a request that is invalid as a whole. */
const code = "invalid_request";

/** The codes of errors of an object. All others are errors of the caller. */
const failures = ["unanswered", "invalid_state", "unsupported_version"];

/** The result of an item, or its error. */
type Result = Record<string, unknown> | { readonly error: ErrorInfo };

/** Responds to a request to the HTTP API. `name` is the part of the path after the version. */
export async function api(
  request: Request,
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  name: string,
): Promise<Response> {
  const response =
    request.method === "OPTIONS" ? preflight() : await respond(request, env, context, isolate, name);
  return admit(response, request, isolate.origins);
}

async function respond(
  request: Request,
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  name: string,
): Promise<Response> {
  if (name === "openapi.json") {
    const more = isolate.watches ? (await import("../watch/watch-chunk.ts")).paths : {};
    return Response.json(openapi(isolate.prefix, more));
  }
  if (name === "watch" || name === "why") return watch(request, env, context, isolate, name);
  if (!Object.hasOwn(operations, name))
    return problem(404, "There is no such operation", { code, operations: Object.keys(operations) });
  if (request.method !== "POST")
    return problem(405, "Use POST with a JSON body", { code }, { Allow: "POST, OPTIONS" });
  const closed = await closedTo(request, env, isolate);
  if (closed) return closed;
  const body = await readBody(request);
  if (body instanceof Response) return body;
  return answer(env, context, isolate, name as Operation, body.json);
}

/** Responds to a question about all keys, or about one, if decisions are counted. */
async function watch(
  request: Request,
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  name: "watch" | "why",
): Promise<Response> {
  if (request.method !== "GET") return problem(405, "Use GET", { code }, { Allow: "GET, OPTIONS" });
  const closed = await closedTo(request, env, isolate);
  if (closed) return closed;
  if (!isolate.watches)
    return problem(404, "Decisions are not counted: set watch = true in the configuration", {
      code: "watch_off",
    });
  const endpoints = await import("../watch/watch-chunk.ts");
  const answer = endpoints[name === "watch" ? "watched" : "why"]({
    url: new URL(request.url),
    isolate,
    namesOf(object) {
      const wrong = wrongId(env, isolate, object);
      if (wrong) throw wrong;
      return { key: isolate.logged(object, env), object: idIn(env, isolate, object) };
    },
    ask: (question) => askWatch(env, isolate, JSON.stringify(question)),
    read: (operation, item) => answerItem(env, context, isolate, operation, item),
  });
  try {
    return Response.json(await answer, { headers: { "Cache-Control": "no-store" } });
  } catch (error) {
    if (error instanceof Unanswered)
      return problem(503, error.message, { code: "unanswered" }, { "Retry-After": "1" });
    const { code, message } = error as ErrorInfo;
    if (typeof code !== "string") throw error;
    return problem(400, message, { code });
  }
}

async function readBody(request: Request): Promise<{ json: unknown } | Response> {
  const type = request.headers.get("Content-Type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json")
    return problem(415, "The body must be JSON, and its Content-Type application/json", { code });
  try {
    const text = await textUpTo(largestBody, request);
    if (text === undefined) return problem(413, `The body may have at most ${largestBody} bytes`, { code });
    return { json: JSON.parse(text) };
  } catch {
    return problem(400, "The body is not JSON in UTF-8", { code });
  }
}

/** Returns the text of a body; `undefined` if it is too large. Counts the bytes: `Content-Length` may be wrong. */
async function textUpTo(most: number, { body }: Request): Promise<string | undefined> {
  // Fatal, since otherwise different invalid bytes would become the same key.
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let text = "";
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.byteLength;
    if (length > most) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

async function answer(
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  operation: Operation,
  json: unknown,
): Promise<Response> {
  let read: ReturnType<Isolate["items"]>;
  try {
    read = isolate.items(operation, json);
  } catch (error) {
    const { code, message } = error as ErrorInfo;
    if (typeof code !== "string") throw error;
    return problem(400, message, { code });
  }
  const written = read.batch ? (json as unknown[]) : [json];
  const answers = await Promise.all(
    read.items.map((item, at) => {
      const error = "code" in item ? item : brokenKey(written[at]);
      return error
        ? { error: { code: error.code, message: error.message } }
        : answerItem(env, context, isolate, operation, item as Item);
    }),
  );
  if (read.batch) return Response.json(answers, { headers: { "Cache-Control": "no-store" } });
  return alone(answers[0] as Result);
}

function alone(answer: Result): Response {
  if (!("error" in answer)) return Response.json(answer, { headers: { "Cache-Control": "no-store" } });
  const { code, message } = answer.error as ErrorInfo;
  return failures.includes(code)
    ? problem(503, message, { code }, { "Retry-After": "1" })
    : problem(400, message, { code });
}

async function answerItem(
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  operation: Operation,
  item: Item,
): Promise<Result> {
  const background = (work: Promise<unknown>) => context.waitUntil(work);
  const objectCall = { env, isolate, via: "api", operation, item, background } as const;
  try {
    if (item.question !== undefined) return shapedInJson(await callObjectInJson(objectCall, item.question));
    const numbers = await callObject(objectCall);
    return typeof numbers !== "string" ? { error: numbers } : shaped(operation, numbers, item.names);
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    return { error: { code: "unanswered", message: error.message } };
  }
}

/** The fields of results, by operation. */
const fieldOf: { readonly [name in Operation]?: string } = resultFields;

function shaped(operation: Operation, numbers: Numbers, names: readonly string[]): Record<string, unknown> {
  const field = fieldOf[operation];
  if (field === undefined) return forJson(named(numbers, names));
  const { gives } = operations[operation];
  if (gives === "flag") return { [field]: Number(numbers) > 0 };
  return { [field]: numberIn(numbers), ...exceptionAfter(numbers) };
}

/** Returns the exception that follows a count, with its end. */
function exceptionAfter(numbers: Numbers): Record<string, unknown> {
  const [, until, ...json] = numbers.split(" ");
  return until === undefined ? {} : { exception: JSON.parse(json.join(" ")), until: Number(until) };
}

function shapedInJson(answer: Answer): Result {
  if ("number" in answer) return { until: answer.number };
  if ("excepted" in answer) {
    const { exception, until } = answer.excepted;
    return exception === null ? { exception } : { exception, until };
  }
  if ("decision" in answer) return answer.decision;
  if ("undoable" in answer) return answer.undoable;
  if ("undone" in answer) return { undone: answer.undone > 0 };
  if ("leased" in answer) return answer.leased;
  if ("reserved" in answer) return { allowed: answer.reserved.decision.allowed, ...answer.reserved };
  if (!("settled" in answer)) return answer;
  const { settlement, id, expiresAt } = answer.settled;
  return id === null ? { settlement } : { settlement, id, expiresAt };
}
