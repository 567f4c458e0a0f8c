import { CommandError } from "./errors.ts";

/** Where a Worker is. */
export interface WorkerPlace {
  /** With its prefix. */
  readonly url: string;
  readonly token: string;
  readonly timeout: number;
}

/** Returns what a Worker's HTTP API has at a path. */
export async function requested({ url, token, timeout }: WorkerPlace, path: string): Promise<unknown> {
  const { host } = new URL(url);
  let response: Response;
  try {
    response = await fetch(`${url.replace(/\/+$/, "")}/v1/${path}`, {
      headers: { Authorization: `Bearer ${token}` },
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
  if (response.ok && response.headers.get("Content-Type")?.includes("json")) return await response.json();
  throw await rejected(host, response);
}

const reasonOf = ({ message, cause }: Error): string => (cause instanceof Error ? cause.message : message);

/** Returns the error for a response that is none of the API, or that is a problem. */
async function rejected(host: string, response: Response): Promise<CommandError> {
  const problem = await response.json().catch(() => undefined);
  const { code, detail, title } = (problem ?? {}) as Record<string, string | undefined>;
  if (response.status === 401 || response.status === 403)
    return new CommandError(`${host} rejected the token in TOLLGATE_TOKEN`);
  if (code === "watch_off")
    return new CommandError(`${host} does not watch its keys; set watch = true in [vars.TOLLGATE]`);
  const said = detail ?? title ?? code;
  if (said !== undefined) return new CommandError(`${host}: ${said}`);
  return new CommandError(
    `${host} is not a Tollgate Worker: it responded ${response.status}; --url needs the prefix, too`,
  );
}
