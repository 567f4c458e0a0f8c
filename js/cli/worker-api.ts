import { CommandError } from "./errors.ts";

/** Where a Worker is. */
export interface WorkerPlace {
  /** With its prefix. */
  readonly url: string;
  readonly token: string;
  readonly timeout: number;
}

/** Returns what a Worker's HTTP API has at a path, or answers to a body in JSON. */
export async function requested(
  { url, token, timeout }: WorkerPlace,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const { host } = new URL(url);
  let response: Response;
  try {
    response = await fetch(`${url.replace(/\/+$/, "")}/v1/${path}`, {
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      headers: {
        Authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      redirect: "manual",
      signal: AbortSignal.timeout(timeout),
    });
  } catch (error) {
    const isLate = (error as Error).name === "TimeoutError";
    const reason = isLate
      ? `did not respond in ${timeout} ms`
      : `cannot be reached: ${reasonOf(error as Error)}`;
    throw new CommandError(`${host} ${reason}`);
  }
  if (!response.ok || !isJson(response)) throw await rejected(host, response);
  return await response.json();
}

const reasonOf = ({ message, cause }: Error): string => (cause instanceof Error ? cause.message : message);

const isJson = ({ headers }: Response): boolean => headers.get("Content-Type")?.includes("json") === true;

/** Returns the error for a response that is none of the API, or that is a problem. */
async function rejected(host: string, response: Response): Promise<CommandError> {
  const problem = isJson(response) ? await response.json().catch(() => undefined) : undefined;
  const { code, detail, title } = (problem ?? {}) as Record<string, unknown>;
  // The API names its realm; an origin behind another prefix has its own.
  if (response.status === 401 && response.headers.get("WWW-Authenticate")?.includes('"tollgate"'))
    return new CommandError(`${host} rejected the token in TOLLGATE_TOKEN`);
  if (code === "watch_off")
    return new CommandError(`${host} does not watch its keys; set watch = true in [vars.TOLLGATE]`);
  const said = [detail, title, code].find((text) => typeof text === "string");
  const isOfApi = response.headers.get("Content-Type")?.includes("application/problem+json");
  if (said !== undefined && isOfApi) return new CommandError(`${host}: ${said}`);
  return new CommandError(
    `${host} is not a Tollgate Worker: it responded ${response.status}; --url needs the prefix of its API`,
  );
}
