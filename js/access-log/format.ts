/** Returns the value of a field in the last line; undefined if the line has none. */
export type Field = () => string | undefined;

/** A field that no line has. */
export const absent: Field = () => undefined;

/** A format of log lines. It reads line by line, and keeps the last line. */
export interface Format {
  /** The time of the last line, in milliseconds since the epoch. */
  readonly time: number;
  /** Reads a line. Returns undefined, an error, or `""` for a line that is not an entry, such as a header. */
  read(line: string): string | undefined;
  /** Returns a function that returns a field of the last line. */
  field(name: string): Field;
  /** Returns the names of the fields that lines have, by the last line that could be parsed. */
  names(): readonly string[];
}

/** The names of the formats, as `--format` takes them. */
export const formatNames = ["combined", "json", "csv"] as const;

/** The name of a format. */
export type FormatName = (typeof formatNames)[number];

/**
 * Names under which servers and platforms log the fields that every format of this module has: the first that a line
 * has is taken.
 */
const aliases: Readonly<Record<string, readonly string[]>> = {
  time: [
    ...[
      "timestamp",
      "@timestamp",
      "ts",
      "date",
      "datetime",
      "time_iso8601",
      "time_local",
      "msec",
      "start_time",
    ],
    ...["EdgeStartTimestamp", "Datetime", "datetimeUtc", "requestTime", "startTime"],
  ],
  ip: [
    ...[
      "remote_addr",
      "client_ip",
      "clientIp",
      "clientip",
      "client_addr",
      "remote_ip",
      "remoteIp",
      "remoteAddress",
    ],
    ...[
      "ClientIP",
      "c-ip",
      "req.remoteAddress",
      "req.ip",
      "request.remote_ip",
      "request.client_ip",
      "httpRequest.remoteIp",
    ],
  ],
  user: ["remote_user", "user_id", "userId", "username", "auth_user", "request.user_id"],
  method: [
    ...["request_method", "http_method", "ClientRequestMethod", "cs-method", "verb"],
    ...["req.method", "request.method", "httpRequest.requestMethod"],
  ],
  path: [
    ...["uri", "url", "request_uri", "request_path", "ClientRequestURI", "cs-uri-stem"],
    ...["req.url", "request.uri", "request.path", "httpRequest.requestUrl"],
  ],
  agent: ["user_agent", "http_user_agent", "userAgent", "ClientRequestUserAgent"],
  referer: ["referrer", "http_referer", "ClientRequestReferer"],
};

/** Returns the names that a field may have in a log, `name` first. */
export const namesOf = (name: string): readonly string[] => [name, ...(aliases[name] ?? [])];

/** Returns a value as text; undefined for an empty value, which logs write as `""` or `"-"`. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value === "" || value === "-" ? undefined : value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

/** Returns the path of a request's target, without scheme, host, query and fragment. */
export function pathOf(target: string | undefined): string | undefined {
  if (target === undefined) return undefined;
  const end = target.search(/[?#]/);
  const path = end < 0 ? target : target.slice(0, end);
  const scheme = /^https?:\/\/[^/]*/i.exec(path)?.[0].length ?? 0;
  return path.slice(scheme) || "/";
}
