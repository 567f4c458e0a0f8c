import { checkFunctions } from "../checks.ts";
import { Account } from "./account.ts";
import { wasSent } from "./broken.ts";
import type { Charge } from "./charge.ts";
import type { Delivered } from "./delivered.ts";
import { BudgetDenied } from "./denied.ts";
import { metered } from "./metered.ts";
import { type ModelBudgetOptions, readOptions } from "./options.ts";
import { asText, checkedCount } from "./request.ts";

/** The parameters of a call of a model of the AI SDK, as far as a budget reads them. */
interface ModelParams {
  readonly prompt?: unknown;
  readonly values?: unknown;
  readonly tools?: unknown;
  readonly responseFormat?: unknown;
  readonly maxOutputTokens?: unknown;
  readonly n?: unknown;
  readonly abortSignal?: AbortSignal | undefined;
}

/** The result of a call that is no stream. */
interface ModelResult {
  readonly content?: unknown;
  readonly images?: unknown;
  readonly usage?: unknown;
}

/** A part of a stream. */
interface StreamPart {
  readonly type: string;
  readonly id?: unknown;
  readonly delta?: unknown;
  readonly toolCallId?: unknown;
  readonly input?: unknown;
  readonly usage?: unknown;
  readonly finishReason?: unknown;
}

/**
 * A middleware for language, embedding and image models of the `ai` package, from its version 5 on: it needs none of the
 * package's own types or code.
 */
export interface BudgetMiddleware {
  /** The version of the package's specification. Each version has types of its own for the same hooks. */
  // biome-ignore lint/suspicious/noExplicitAny: the types of each version accept only their own.
  readonly specificationVersion: any;
  /** Charges a call that returns a whole response. */
  wrapGenerate<Result extends object>(options: {
    doGenerate: () => PromiseLike<Result>;
    params: object;
    model: object;
  }): Promise<Result>;
  /** Charges a call that returns a stream. */
  wrapStream<Result extends object>(options: {
    doStream: () => PromiseLike<Result>;
    params: object;
    model: object;
  }): Promise<Result>;
  /** Charges a call that returns embeddings. */
  wrapEmbed<Result extends object>(options: {
    doEmbed: () => PromiseLike<Result>;
    params: object;
    model: object;
  }): Promise<Result>;
}

/**
 * Returns a middleware that charges each call of a model to a budget: it reserves an estimate before the call, and settles
 * the used amount after it.
 *
 * @throws TollgateError if an option is invalid. A denied call rejects with `BudgetDenied`.
 *
 * @example
 * ```js
 * import { wrapLanguageModel } from "ai";
 * import { RateLimiter } from "tollgate";
 * import { budget, usd } from "tollgate/ai";
 *
 * const limiter = new RateLimiter([
 *   { name: "tokens", algorithm: "token_bucket", capacity: 90_000, refillRate: 1_500 },
 *   { name: "usd", algorithm: "fix_window", limit: usd("20"), scale: "month" },
 *   { name: "running", algorithm: "concurrency", limit: 5 },
 * ]);
 * const prices = { "gpt-5": { input: "1.25", cachedInput: "0.125", output: "10" } };
 *
 * const modelFor = (user, model) =>
 *   wrapLanguageModel({ model, middleware: budget({ limiter, key: user.id, prices }) });
 * ```
 */
export function budget(options: ModelBudgetOptions): BudgetMiddleware {
  const read = readOptions(options, ["onDenied"]);
  checkFunctions(read, ["onDenied"]);
  const { onDenied } = read;
  const account = new Account(read);

  const open = async (params: ModelParams, model: object, mostOutput: number | undefined) => {
    try {
      return await account.open({
        model: (model as { readonly modelId: string }).modelId,
        params,
        input: [params.prompt, params.values, asText([params.tools, params.responseFormat])],
        mostOutput,
        outputs: checkedCount(params.n) ?? 1,
        uses: params.n === undefined ? {} : { images: checkedCount(params.n) ?? 1 },
        signal: params.abortSignal,
      });
    } catch (error) {
      if (error instanceof BudgetDenied) await onDenied?.(error);
      throw error;
    }
  };

  return {
    specificationVersion: "v4",
    async wrapGenerate({ doGenerate, params, model }) {
      const charge = await open(params, model, mostOf(params));
      const result = await begun(doGenerate, charge, params);
      const { content, images, usage } = result as ModelResult;
      if (Array.isArray(images)) charge.delivered.use("images", images.length);
      charge.delivered.addTexts(content);
      charge.delivered.say(usage, true);
      await charge.settleDelivered();
      return result;
    },
    async wrapEmbed({ doEmbed, params, model }) {
      const charge = await open(params, model, 0);
      const result = await begun(doEmbed, charge, params);
      charge.delivered.say((result as ModelResult).usage, true);
      await charge.settleDelivered();
      return result;
    },
    async wrapStream({ doStream, params, model }) {
      const charge = await open(params, model, mostOf(params));
      const result = await begun(doStream, charge, params);
      const parts = new PartReader(charge.delivered);
      const { stream: whole } = result as { readonly stream: ReadableStream<StreamPart> };
      const stream = metered(whole, charge, parts, (params as ModelParams).abortSignal);
      return { ...result, stream };
    },
  };
}

const mostOf = (params: object) => checkedCount((params as ModelParams).maxOutputTokens);

/**
 * Begins a call. If that fails, nothing is charged, unless it may have begun at the provider or the response was invalid.
 */
async function begun<Result>(
  begin: () => PromiseLike<Result>,
  charge: Charge,
  params: ModelParams,
): Promise<Result> {
  try {
    return await begin();
  } catch (error) {
    const { statusCode } = (error ?? {}) as { readonly statusCode?: unknown };
    if (params.abortSignal?.aborted || wasSent(error)) await charge.settleAborted();
    else if (typeof statusCode === "number" && statusCode < 300) await charge.settleInFull();
    else await charge.cancel();
    throw error;
  }
}

/** Reads the parts of a stream of the AI SDK. */
class PartReader {
  readonly #delivered: Delivered;
  /** The tool calls whose input was streamed, and comes again as a whole. */
  readonly #streamed = new Set<unknown>();

  constructor(delivered: Delivered) {
    this.#delivered = delivered;
  }

  read(part: StreamPart): StreamPart {
    const delivered = this.#delivered;
    switch (part.type) {
      case "tool-input-delta":
        this.#streamed.add(part.id);
        delivered.addTexts(part.delta);
        break;
      case "text-delta":
      case "reasoning-delta":
        delivered.addTexts(part.delta);
        break;
      case "tool-call":
        if (!this.#streamed.has(part.toolCallId)) delivered.addTexts(part.input);
        break;
      case "finish":
        delivered.say(part.usage, isWhole(part.finishReason));
        break;
      case "error":
        delivered.hasFailed = true;
        break;
    }
    return part;
  }
}

/**
 * Returns whether a stream has ended as it should: providers of the AI SDK say an end, and what they know of the usage, also
 * after a connection was lost.
 */
function isWhole(finishReason: unknown): boolean {
  const { unified = finishReason, raw } = Object(finishReason) as {
    readonly unified?: unknown;
    readonly raw?: unknown;
  };
  if (unified === "interrupted" || unified === "unknown") return false;
  return (unified !== "error" && unified !== "other") || raw !== undefined;
}
