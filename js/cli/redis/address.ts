import { UsageError } from "../errors.ts";

/** Where a Redis is, and how to log in. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
}

const expected = "an address such as redis://127.0.0.1:6379/0, or rediss:// with TLS";

/** Parses the value of `--redis`. Errors do not show it: it may contain a password. */
export function readAddress(text: string): Address {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["redis:", "rediss:"].includes(url.protocol) || url.hostname === "")
    throw new UsageError(`--redis is not ${expected}`);
  const path = /^\/?(\d{0,5})$/.exec(url.pathname);
  if (path === null || url.search !== "" || url.hash !== "")
    throw new UsageError(`--redis: only the number of a database may follow the host: ${expected}`);
  return {
    // Sockets take addresses of IPv6 without brackets.
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? 6379 : Number(url.port),
    isTls: url.protocol === "rediss:",
    username: decoded(url.username),
    password: decoded(url.password),
    database: Number(path[1]),
  };
}

function decoded(text: string): string | undefined {
  if (text === "") return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UsageError("--redis: write a % in the user or password as %25");
  }
}

/** Returns an address in words: `127.0.0.1:6379`. */
export const shown = ({ host, port }: Pick<Address, "host" | "port">): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`;
