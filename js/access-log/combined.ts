import { absent, type Field, type Format, pathOf, textOf } from "./format.ts";
import { commonTimeLength, type Times } from "./times.ts";

/** The fields of a line, as `--key` and `--cost` name them. */
export const combinedFields = [
  ...["ip", "host", "ident", "user", "request", "method", "path", "query", "target", "protocol"],
  ...["status", "size", "referer", "agent"],
] as const;

/**
 * The common and the combined format of Apache and nginx:
 * `192.0.2.1 - ann [10/Oct/2026:13:55:36 +0000] "GET /a HTTP/1.1" 200 2326 "referer" "agent"`.
 * A virtual host in front, as in Debian's `other_vhosts_access.log`, is skipped.
 */
export class Combined implements Format {
  time = Number.NaN;
  readonly #times: Times;
  #line = "";
  #start = 0;
  #space = 0;
  #bracket = 0;
  /** Method, target and protocol of the last line; undefined until they are needed. */
  #parts: RequestParts | undefined;

  constructor(times: Times) {
    this.#times = times;
  }

  read(line: string): string | undefined {
    let start = 0;
    let space = line.indexOf(" ");
    const bracket = line.indexOf(" [", space);
    if (space <= 0 || bracket < 0) return "it has no time in brackets";
    if (isVirtualHost(line, space)) {
      start = space + 1;
      space = line.indexOf(" ", start);
    }
    const time = this.#times.common(line, bracket + 2);
    const end = bracket + 2 + commonTimeLength;
    if (Number.isNaN(time) || line.charCodeAt(end) !== closingBracket)
      return `${shown(line.slice(bracket + 1, end + 1))} is not a time`;
    this.#line = line;
    this.#start = start;
    this.#space = space;
    this.#bracket = bracket;
    this.#parts = undefined;
    this.time = time;
    return undefined;
  }

  names(): readonly string[] {
    return this.#line === "" ? [] : combinedFields;
  }

  field(name: string): Field {
    switch (name) {
      case "ip":
      case "host":
        return () => this.#line.slice(this.#start, this.#space);
      case "ident":
        return () => textOf(this.#line.slice(this.#space + 1, this.#line.indexOf(" ", this.#space + 1)));
      case "user":
        return () => this.#user();
      case "request":
        return () => textOf(this.#quoted(0));
      case "method":
        return () => this.#request()[0];
      case "target":
        return () => this.#request()[1];
      case "path":
        return () => pathOf(this.#request()[1]);
      case "query":
        return () => queryOf(this.#request()[1]);
      case "protocol":
        return () => this.#request()[2];
      case "status":
        return () => this.#number(0);
      case "size":
        return () => this.#number(1);
      case "referer":
        return () => textOf(this.#quoted(1));
      case "agent":
        return () => textOf(this.#quoted(2));
      default:
        return absent;
    }
  }

  #user(): string | undefined {
    // A user's name may contain blanks; the fields before it do not.
    const start = this.#line.indexOf(" ", this.#space + 1) + 1;
    return start > this.#bracket ? undefined : textOf(this.#line.slice(start, this.#bracket));
  }

  #request(): RequestParts {
    this.#parts ??= requestParts(this.#quoted(0) ?? "");
    return this.#parts;
  }

  /** Returns the text of the quotes at a position, with its escapes. */
  #quoted(position: number): string | undefined {
    let end = this.#bracket + commonTimeLength;
    for (let at = 0; ; at += 1) {
      const start = this.#line.indexOf('"', end + 1) + 1;
      if (start === 0) return undefined;
      end = closingQuote(this.#line, start);
      if (end < 0) return undefined;
      if (at === position) return this.#line.slice(start, end);
    }
  }

  /** Returns the status or the size, which follow the request. */
  #number(position: number): string | undefined {
    const open = this.#line.indexOf('"', this.#bracket);
    const close = open < 0 ? -1 : closingQuote(this.#line, open + 1);
    return close < 0 ? undefined : textOf(this.#line.slice(close + 2).split(" ", 2)[position]);
  }
}

/** Method, target and protocol; all undefined if the request has no target. */
type RequestParts = readonly [method?: string, target?: string, protocol?: string];

function requestParts(request: string): RequestParts {
  const first = request.indexOf(" ");
  if (first <= 0) return [];
  const last = request.lastIndexOf(" ");
  if (last === first || !request.startsWith("HTTP/", last + 1))
    return [request.slice(0, first), request.slice(first + 1)];
  return [request.slice(0, first), request.slice(first + 1, last), request.slice(last + 1)];
}

const closingBracket = 93;
const backslash = 92;

/** Returns whether a line starts with a name and a port, then an address: `www.example.com:443 192.0.2.1 - …`. */
function isVirtualHost(line: string, space: number): boolean {
  const letter = line.charCodeAt(0) | 32;
  if (letter < 97 || letter > 122) return false;
  // Without one expression for all of it, which would take quadratic time for a name of dots.
  const colon = line.indexOf(":");
  const dot = line.indexOf(".");
  return (
    dot > 0 &&
    dot < colon &&
    colon < space &&
    /^\d{1,5}$/.test(line.slice(colon + 1, space)) &&
    /^[\da-f.:]+ \S+ /i.test(line.slice(space + 1, space + 64))
  );
}

/** Returns the position of the closing quote; -1 if there is none. A quote after a backslash is part of the text. */
function closingQuote(line: string, from: number): number {
  let end = line.indexOf('"', from);
  while (end > from && isEscaped(line, end)) end = line.indexOf('"', end + 1);
  return end;
}

function isEscaped(line: string, at: number): boolean {
  let count = 0;
  while (line.charCodeAt(at - 1 - count) === backslash) count += 1;
  return count % 2 === 1;
}

function queryOf(target: string | undefined): string | undefined {
  const start = target?.indexOf("?") ?? -1;
  return start < 0 ? undefined : textOf(target?.slice(start + 1));
}

const shown = (text: string) => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
