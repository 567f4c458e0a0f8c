import type { Isolate, Item } from "../gateway/isolate.ts";
import type { ErrorInfo } from "../object/decision.ts";
import type { View } from "./book.ts";
import { banNamesIn, policyNamesIn } from "./labels.ts";
import type { Denial } from "./report.ts";
import type { Question } from "./watch-object.ts";

/** The most policies under which a key is shown. */
const mostPolicies = 32;

/** The result of an operation, or its error. */
type Result = Record<string, unknown> | { readonly error: ErrorInfo };

/** What the endpoints need of the Worker. */
export interface Endpoint {
  readonly url: URL;
  readonly isolate: Pick<Isolate, "json" | "plainKeys" | "items">;
  /** Returns the key of an object as the logs have it, and its id after `#`. */
  readonly namesOf: (object: string) => Pick<Denial, "key" | "object">;
  /** Asks the watch object. */
  readonly ask: (question: Question) => Promise<string>;
  /** Performs an operation that changes nothing. */
  readonly read: (operation: "get" | "peek", item: Item) => Promise<Result>;
}

/** Returns what is known of all keys. */
export async function watched({ isolate, ask }: Endpoint): Promise<object> {
  const view = JSON.parse(await ask({ view: true })) as View;
  const { json, plainKeys } = isolate;
  return {
    ...view,
    keys: plainKeys ? "plain" : "hashed",
    policies: policyNamesIn(json),
    bans: banNamesIn(json),
  };
}

/** Returns what counts now for one key, and why it was denied within a day. */
export async function why({ url, isolate, namesOf, ask, read }: Endpoint): Promise<object> {
  const { policies: given, ...field } = fieldsOf(url.searchParams);
  const configured = policyNamesIn(isolate.json);
  const [first] = given.length > 0 ? given : configured;
  if (first === undefined) throw wrong("unknown_policy", "there is no policy in the configuration");
  const { items: named } = isolate.items("peek", { policy: first, ...field });
  const { object } = itemOf(named[0]);
  const names = namesOf(object);
  const denials = JSON.parse(await ask({ denialsOf: names.object })) as Denial[];
  const denying = [...new Set(denials.flatMap(({ policies }) => policies))];
  const known = denying.filter((name) => configured.includes(name));
  const shown = [given, known, configured].find(({ length }) => length > 0) ?? [];
  const policies = await Promise.all(
    shown.slice(0, mostPolicies).map(async (policy) => {
      const answer = (operation: "get" | "peek", more: object = {}) => {
        const [item] = isolate.items(operation, { policy, ...field, ...more }).items;
        return item === undefined || "code" in item ? { error: infoOf(item) } : read(operation, item);
      };
      // A peek counts the hit that it asks about, so one of cost 0 says what is left now.
      const [count, now, decision] = await Promise.all([
        answer("get"),
        answer("peek", { cost: 0 }),
        answer("peek"),
      ]);
      if ("error" in decision) return { policy, ...decision };
      return { policy, ...count, remaining: (now as { remaining?: number }).remaining, decision };
    }),
  );
  return { now: Date.now(), ...names, key: denials[0]?.key ?? names.key, policies, denials };
}

/** Returns the fields of an item, and the names of policies. */
function fieldsOf(params: URLSearchParams) {
  for (const name of params.keys())
    if (!["key", "parts", "policy"].includes(name))
      throw wrong("invalid_request", `${name}: unknown parameter; expected one of key, parts, policy`);
  const [key, ...more] = params.getAll("key");
  if (more.length > 0) throw wrong("invalid_request", "key: there is a second one");
  const parts = params.getAll("parts");
  return {
    policies: params.getAll("policy"),
    ...(key === undefined ? {} : { key }),
    ...(parts.length === 0 ? {} : { parts }),
  };
}

/** Returns the code and the message of an error. */
const infoOf = ({ code, message }: ErrorInfo = wrong("invalid_request", "there is no item")): ErrorInfo => ({
  code,
  message,
});

function itemOf(item: Item | ErrorInfo | undefined): Item {
  if (item === undefined) throw wrong("invalid_request", "there is no key");
  if ("code" in item) throw item;
  return item;
}

const wrong = (code: "invalid_request" | "unknown_policy", message: string) =>
  Object.assign(new Error(message), { code });
