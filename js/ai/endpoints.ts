/**
 * How a call of an endpoint is counted: `text` by what it says and delivers, `input` by its input alone, `image` and `audio`
 * by what it says, or as reserved, `batch` by its results, and `job` as estimated until its result is fetched. A `free`
 * endpoint runs no model.
 */
export type EndpointKind = "text" | "input" | "image" | "audio" | "batch" | "job" | "free";

/** The endpoints of each kind, by the end of their paths. `*` is any one segment, and `:verb` the end of the last one. */
export const endpoints: Readonly<Record<EndpointKind, readonly string[]>> = {
  text: [
    "chat/completions",
    "completions",
    "responses",
    "responses/compact",
    "messages",
    ":generateContent",
    ":streamGenerateContent",
    ":rawPredict",
    ":streamRawPredict",
  ],
  input: ["embeddings", "embed", "rerank", ":embedContent", ":batchEmbedContents"],
  image: ["images/generations", "images/edits", "images/variations"],
  audio: ["audio/speech", "audio/transcriptions", "audio/translations"],
  batch: ["messages/batches"],
  job: [
    "batches",
    ":batchGenerateContent",
    ":predict",
    ":predictLongRunning",
    "videos",
    "videos/edits",
    "videos/extensions",
    "videos/*/remix",
    "realtime/calls",
    "realtime/client_secrets",
    "realtime/sessions",
    "realtime/transcription_sessions",
  ],
  free: [
    "moderations",
    "messages/count_tokens",
    "responses/input_tokens",
    "tokenize",
    "detokenize",
    ":countTokens",
    ":computeTokens",
    "files",
    "uploads",
    "uploads/*/parts",
    "uploads/*/complete",
    "uploads/*/cancel",
    "responses/*/cancel",
    "batches/*/cancel",
  ],
};

const kinds: ReadonlyMap<string, EndpointKind> = /* @__PURE__ */ new Map(
  (Object.entries(endpoints) as [EndpointKind, readonly string[]][]).flatMap(([kind, paths]) =>
    paths.map((path) => [path, kind] as const),
  ),
);

/** Returns the kind of the endpoint of a path; `undefined` for one that is not in the table. */
export function kindOf(path: string): EndpointKind | undefined {
  const segments = path.split("/").filter((segment) => segment !== "");
  const last = segments.at(-1) ?? "";
  const verb = last.indexOf(":");
  if (verb >= 0) return kinds.get(last.slice(verb));
  const [before, middle] = [segments.at(-3), segments.at(-2)];
  return (
    kinds.get(`${before}/${middle}/${last}`) ?? kinds.get(`${before}/*/${last}`) ?? kindOfEnd(middle, last)
  );
}

const kindOfEnd = (middle: string | undefined, last: string): EndpointKind | undefined =>
  kinds.get(`${middle}/${last}`) ?? kinds.get(last);

/** Returns the model that a path names: that of Gemini, or a deployment of Azure, which stands for one. */
export const modelIn = (path: string): string =>
  decoded(
    /\/deployments\/([^/]+)/.exec(path)?.[1] ?? /\/(?:models|tunedModels)\/([^/:]+):/.exec(path)?.[1] ?? "",
  );

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the id of a job whose result a path names: a response, a batch, or the results of one. */
export const jobIn = (path: string): string | undefined =>
  /\/(?:responses|batches)\/([^/:]+)(?:\/(?:results|cancel))?\/*$/.exec(path)?.[1];
