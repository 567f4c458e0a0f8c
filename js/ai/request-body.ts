/** Reads the bodies of requests as a server would. */

/** A request whose body can be read: what to send on, and its text or the fields of its form. */
export interface ReadRequest {
  readonly args: Parameters<typeof fetch>;
  /** `undefined` for a body that cannot be read. */
  readonly text: string | undefined;
  readonly form?: FormData | undefined;
}

/** Reads the body of a request. The caller's is left to be sent, or a copy of it. */
export async function readBody(
  input: RequestInfo | URL,
  init: RequestInit | undefined,
): Promise<ReadRequest> {
  const args: Parameters<typeof fetch> = [input, init];
  // A `Request` may be one of another realm.
  const given = typeof input === "object" && "clone" in input ? input : undefined;
  const body: unknown = init?.body ?? undefined;
  if (body instanceof FormData) return { args, text: undefined, form: body };
  const { headers: own = given?.headers } = init ?? {};
  const headers = new Headers(own);
  if (typeof body === "string" && !headers.has("Content-Encoding")) return { args, text: withoutMark(body) };
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body))
    return { args, ...(await readBytes(body as BodyInit, headers)) };
  if (given !== undefined && body === undefined)
    return { args, ...(await readBytes(await given.clone().arrayBuffer(), headers)) };
  const whole = new Request(input, isStream(body) ? ({ ...init, duplex: "half" } as RequestInit) : init);
  // Of a stream only a copy is left to be sent.
  return { args: [whole], ...(await readBytes(await whole.clone().arrayBuffer(), whole.headers)) };
}

const isStream = (body: unknown) => body instanceof ReadableStream || Symbol.asyncIterator in Object(body);

const withoutMark = (text: string): string => (text.startsWith("\uFEFF") ? text.slice(1) : text);

async function readBytes(body: BodyInit, headers: Headers): Promise<Pick<ReadRequest, "text" | "form">> {
  try {
    const encoding = headers.get("Content-Encoding") ?? "";
    const bytes = await new Response(decoded(new Response(body).body, encoding)).arrayBuffer();
    const type = headers.get("Content-Type") ?? "";
    if (!/^multipart\/form-data\b/i.test(type)) return { text: new TextDecoder("utf-8").decode(bytes) };
    const form = await new Response(bytes, { headers: { "Content-Type": type } }).formData();
    return { text: undefined, form };
  } catch {
    return { text: undefined };
  }
}

/** Returns a body without its encodings. Throws for one that the platform does not know. */
function decoded(
  body: ReadableStream<Uint8Array> | null,
  encoding: string,
): ReadableStream<Uint8Array> | null {
  const encodings = encoding.split(",").map((each) => each.trim().toLowerCase().replace(/^x-/, ""));
  return encodings
    .filter((each) => each !== "" && each !== "identity")
    .reverse()
    .reduce(
      (stream, each) => stream?.pipeThrough(new DecompressionStream(each as never) as never) ?? null,
      body,
    );
}

/** Returns the arguments of a `fetch` with another body, and without what was true of the former one. */
export function withBody(args: Parameters<typeof fetch>, body: string): Parameters<typeof fetch> {
  const [input, init] = args;
  const headers = new Headers(init?.headers ?? (input as Partial<Request>).headers);
  headers.delete("Content-Length");
  headers.delete("Content-Encoding");
  return [input, { ...init, body, headers }];
}
