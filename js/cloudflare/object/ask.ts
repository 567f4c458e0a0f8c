import { invalidField } from "../../errors/error.ts";
import type { Numbers } from "../../wasm/decision-numbers.ts";
import type { TollgateEnv } from "../env.ts";
import type { Answer, ErrorInfo } from "./decision.ts";
import type { RateLimiterObject } from "./object.ts";

/** The name of the object that gets the reports on all decisions. The names of keys' objects begin with a slash. */
export const watchName = "tollgate:watch";

/** The ways in which an object fails to respond. */
export type Failure = "overloaded" | "timeout" | "failed";

/** The error of an object that did not respond. */
export class Unanswered extends Error {
  readonly failure: Failure;

  constructor(failure: Failure, cause?: unknown) {
    super(`the object did not respond: ${failure}`, { cause });
    this.failure = failure;
  }

  /** Returns the fields of a log line about it. */
  logFields(): { readonly failure: Failure; readonly cause?: string } {
    return { failure: this.failure, ...(this.cause === undefined ? {} : { cause: String(this.cause) }) };
  }
}

/** Where the platform keeps objects, and how long they may take. */
export interface Reach {
  /** In milliseconds. */
  readonly timeout: number;
  /** The region in which an object is created. */
  readonly locationHint: DurableObjectLocationHint | undefined;
  /** The jurisdiction that an object never leaves. The same name is another object in each. */
  readonly jurisdiction: DurableObjectJurisdiction | undefined;
}

/** Returns the objects of a jurisdiction. */
export const namespaceOf = ({ LIMITERS }: TollgateEnv, { jurisdiction }: Pick<Reach, "jurisdiction">) =>
  jurisdiction === undefined ? LIMITERS : LIMITERS.jurisdiction(jurisdiction);

/**
 * Sends an operation to an object, once. Rejects with `Unanswered`.
 *
 * The platform retries by itself, and knows which calls have run. A retry of ours would charge a hit twice whose reply was
 * lost.
 */
export function ask(
  env: TollgateEnv,
  reach: Reach,
  object: string,
  call: (stub: DurableObjectStub<RateLimiterObject>) => Promise<Numbers | ErrorInfo>,
): Promise<Numbers | ErrorInfo> {
  const wrong = wrongId(env, reach, object);
  return wrong === undefined ? send(env, reach, object, call) : Promise.resolve(wrong);
}

/** Sends an operation in JSON to an object, in the same way. */
export async function askInJson(
  env: TollgateEnv,
  reach: Reach,
  object: string,
  question: string,
): Promise<Answer> {
  const error = wrongId(env, reach, object);
  if (error !== undefined) return { error };
  return JSON.parse(await send(env, reach, object, (stub) => stub.question(question)));
}

/** Returns the object of a name, or of an id after `#`. */
function stubOf(env: TollgateEnv, reach: Reach, object: string) {
  const { locationHint } = reach;
  const namespace = namespaceOf(env, reach);
  const options = locationHint === undefined ? undefined : { locationHint };
  return object.startsWith("#")
    ? namespace.get(namespace.idFromString(object.slice(1)), options)
    : namespace.getByName(object, options);
}

/** Returns the id of an object after `#`. The API takes it in the place of a key, of which only the hash may be known. */
export const idIn = (env: TollgateEnv, reach: Pick<Reach, "jurisdiction">, object: string): string =>
  object.startsWith("#") ? object : `#${namespaceOf(env, reach).idFromName(object)}`;

/** Returns the error of an id that is not of this namespace. */
export function wrongId(
  env: TollgateEnv,
  reach: Pick<Reach, "jurisdiction">,
  object: string,
): ErrorInfo | undefined {
  if (!object.startsWith("#")) return undefined;
  try {
    namespaceOf(env, reach).idFromString(object.slice(1));
    return undefined;
  } catch {
    const { code, message } = invalidField(
      "invalid_key",
      "parts",
      object,
      "# and the id of an object of this Worker",
    );
    return { code, message };
  }
}

/** Asks the watch object. Rejects with `Unanswered`. */
export const askWatch = (env: TollgateEnv, reach: Reach, question: string): Promise<string> =>
  send(env, reach, watchName, (stub) => stub.watch(question));

function send<Reply>(
  env: TollgateEnv,
  reach: Reach,
  object: string,
  call: (stub: DurableObjectStub<RateLimiterObject>) => Promise<Reply>,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Unanswered("timeout")), reach.timeout);
    const replied = (reply: Reply) => {
      clearTimeout(timer);
      resolve(reply);
    };
    const failed = (error: { readonly overloaded?: boolean } | undefined) => {
      clearTimeout(timer);
      reject(new Unanswered(error?.overloaded ? "overloaded" : "failed", error));
    };
    try {
      // Not awaited: each promise in between would cost every hit another turn.
      call(stubOf(env, reach, object)).then(replied, failed);
    } catch (error) {
      failed(error as { readonly overloaded?: boolean });
    }
  });
}
