import { isInteger } from "../policy/durations.ts";

/** A request to a model. */
export interface ModelRequest {
  readonly model: string;
  readonly params: Params;
  /** The parts of the body that are the input. */
  readonly input: unknown;
  /** The most tokens of the output, if the body says it. */
  readonly mostOutput: number | undefined;
}

type Params = { readonly [name: string]: unknown };

/** The fields of a body that are the input of a model: a body without any is no call of one. */
const inputs = ["messages", "input", "prompt"] as const;

/** Addresses that take the input of a model and run none. */
const free = /\/(?:count_tokens|input_tokens|moderations|tokenize)(?:[?#]|$)/;

/**
 * Reads the body of a request for a chat completion, completion, response, message or embedding. Returns `undefined` for
 * any other, such as one for a list of models or a file.
 */
export function readModelRequest(url: string, text: string): ModelRequest | undefined {
  const params = parsed(text);
  if (params === undefined || inputs.every((name) => params[name] === undefined) || free.test(url))
    return undefined;
  const { messages, input, prompt, system, instructions } = params;
  const { tools, functions, response_format, text: format } = params;
  return {
    model: typeof params["model"] === "string" ? params["model"] : deploymentOf(url),
    params,
    input: [
      messages,
      input,
      prompt,
      system,
      instructions,
      asText([tools, functions, response_format, format]),
    ],
    mostOutput: mostOf(url, params),
  };
}

function parsed(text: string): Params | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Params)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the name of a deployment, which stands for the model in addresses of Azure. */
const deploymentOf = (url: string): string => /\/deployments\/([^/?#]+)/.exec(url)?.[1] ?? "";

/** Returns the most tokens of the output of all choices. */
function mostOf(url: string, params: Params): number | undefined {
  if (/\/embeddings\b/.test(url)) return 0;
  const most = checkedCount(
    params["max_completion_tokens"] ?? params["max_output_tokens"] ?? params["max_tokens"],
  );
  if (most === undefined) return undefined;
  const choices = checkedCount(params["best_of"]) ?? checkedCount(params["n"]) ?? 1;
  return Math.min(most * Math.max(choices, 1), Number.MAX_SAFE_INTEGER);
}

/** Returns a count of the caller's; `undefined` if it is none, which the provider rejects. */
export const checkedCount = (value: unknown): number | undefined => (isInteger(value) ? value : undefined);

/** Returns whether a request wants a stream of a completion, and leaves open whether it says its usage. */
export const lacksUsage = (url: string, { params }: ModelRequest): boolean =>
  params["stream"] === true &&
  /\/completions(?:[?#]|$)/.test(url) &&
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
