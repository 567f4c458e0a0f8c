import { TollgateError } from "../errors/error.ts";
import { isInteger } from "../policy/durations.ts";
import { type EndpointKind, modelIn } from "./endpoints.ts";
import type { ReadRequest } from "./request-body.ts";

/** A request to a model. */
export interface ModelRequest {
  readonly kind: EndpointKind | undefined;
  readonly model: string;
  readonly params: Params;
  /** The parts of the body that are the input. */
  readonly input: unknown;
  /** The tokens of files of sound in a form. */
  readonly fileTokens: number;
  /** The most tokens of the output, if the body says it. */
  readonly mostOutput: number | undefined;
  /** How many outputs it asks for. */
  readonly outputs: number;
  readonly uses: Readonly<Record<string, number>>;
  readonly tier: string | undefined;
  readonly needsEstimate: boolean;
}

type Params = { readonly [name: string]: unknown };

/** How many bytes of sound are a token, at least: those of sixteen kilobits a second. */
const bytesOfToken = 200;

/** Reads a request to an endpoint. Returns `undefined` for a body that is no JSON object and no form. */
export function readModelRequest(
  path: string,
  kind: EndpointKind | undefined,
  { text, form }: Pick<ReadRequest, "text" | "form">,
): ModelRequest | undefined {
  const params = form === undefined ? parsed(text) : fieldsOfForm(form);
  if (params === undefined) return undefined;
  if (kind === "batch") return batchOf(path, params);
  const outputs = outputsOf(params);
  return {
    kind,
    model: modelOf(path, params),
    params,
    input: [inputOf(params), kind === "image" ? filesOf(form).map(() => new Uint8Array()) : undefined],
    fileTokens:
      kind === "audio" ? filesOf(form).reduce((sum, { size }) => sum + Math.ceil(size / bytesOfToken), 0) : 0,
    mostOutput: kind === "input" ? 0 : mostOf(params, outputs),
    outputs,
    uses: kind === "image" ? { images: outputs } : {},
    tier: kind === "job" && /[/:]batch\w*\/*$/.test(path) ? "batch" : tierOf(params),
    needsEstimate: kind === "job",
  };
}

/** Returns a request whose body says nothing that can be read. */
export const opaqueRequest = (path: string, text: string | undefined): ModelRequest => ({
  kind: undefined,
  model: modelIn(path),
  params: {},
  input: text,
  fileTokens: 0,
  mostOutput: undefined,
  outputs: 1,
  uses: {},
  tier: undefined,
  needsEstimate: false,
});

/** Reads a batch of messages: its calls are of one model, which has one price. */
function batchOf(path: string, { requests }: Params): ModelRequest | undefined {
  if (!Array.isArray(requests)) return undefined;
  const all = requests.map((each): Params => Object(Object(each).params));
  const models = [...new Set(all.map((params) => modelOf(path, params)))];
  if (models.length > 1)
    throw new TollgateError(
      "invalid_request",
      `requests: a batch of the models ${models.slice(0, 4).join(", ")} cannot be charged; send one for each model`,
    );
  const most = all.map((params) => mostOf(params, 1));
  return {
    kind: "batch",
    model: models[0] ?? "",
    params: { requests },
    input: all.map(inputOf),
    fileTokens: 0,
    mostOutput: most.reduce(
      (sum, each) => (sum === undefined || each === undefined ? undefined : sum + each),
      0,
    ),
    outputs: Math.max(all.length, 1),
    uses: { calls: all.length },
    tier: "batch",
    needsEstimate: false,
  };
}

function parsed(text: string | undefined): Params | undefined {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Params)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the fields of a form that are texts. A field that is there twice has its last value, as in an object. */
function fieldsOfForm(form: FormData): Params {
  const fields: Record<string, unknown> = {};
  for (const [name, value] of form) if (typeof value === "string") fields[name] = value;
  const { n, stream } = fields;
  return { ...fields, n: n === undefined ? undefined : Number(n), stream: stream === "true" };
}

const filesOf = (form: FormData | undefined): readonly Blob[] =>
  [...(form?.values() ?? [])].filter((value): value is File => typeof value === "object");

const modelOf = (path: string, { model }: Params): string =>
  typeof model === "string" && model !== "" ? model : modelIn(path);

/** Returns all that a model reads. */
function inputOf(params: Params): unknown {
  const { messages, input, prompt, system, instructions, contents, systemInstruction, content, requests } =
    params;
  const { texts, query, documents, tools, functions, response_format, text: format } = params;
  return [
    [messages, input, prompt, system, instructions, contents, systemInstruction, content, requests],
    [texts, query, documents],
    asText([tools, functions, response_format, format]),
  ];
}

/** Returns how many outputs are asked for. */
function outputsOf({ best_of, n, generationConfig }: Params): number {
  const { candidateCount } = Object(generationConfig) as Params;
  return (
    [best_of, n, candidateCount].map(checkedCount).find((count) => count !== undefined && count > 0) ?? 1
  );
}

/** Returns the most tokens of the output of all choices. */
function mostOf(params: Params, outputs: number): number | undefined {
  const generation = Object(params["generationConfig"]) as Params;
  const most = checkedCount(
    params["max_completion_tokens"] ??
      params["max_output_tokens"] ??
      params["max_tokens"] ??
      generation["maxOutputTokens"],
  );
  return most === undefined ? undefined : Math.min(most * outputs, Number.MAX_SAFE_INTEGER);
}

const tierOf = ({ service_tier: tier }: Params): string | undefined =>
  typeof tier === "string" ? tier : undefined;

/** Returns a count of the caller's; `undefined` if it is none, which the provider rejects. */
export const checkedCount = (value: unknown): number | undefined => (isInteger(value) ? value : undefined);

/** Returns whether a request wants a stream of a completion, and leaves open whether it says its usage. */
export const lacksUsage = (path: string, { params }: ModelRequest): boolean =>
  params["stream"] === true &&
  /\/completions\/*$/.test(path) &&
  (params["stream_options"] as Params | undefined)?.["include_usage"] === undefined;

/** Returns the body that has the provider say the usage of a stream. */
export const withUsage = ({ params }: ModelRequest): string =>
  JSON.stringify({
    ...params,
    stream_options: { ...(params["stream_options"] as Params | undefined), include_usage: true },
  });

/** Returns tools and schemas as the text that a model reads: the names of their fields count too. */
export const asText = (schemas: readonly unknown[]): string | undefined => {
  const given = schemas.filter((schema) => schema !== undefined);
  return given.length === 0 ? undefined : JSON.stringify(given);
};
