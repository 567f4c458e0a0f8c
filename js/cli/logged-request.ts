import { absent, type Field, type Format } from "../access-log/format.ts";

/** A logged request in the form that the gateway takes, with the headers that the log has. */
export class LoggedRequest {
  readonly #format: Format;
  readonly #method: Field;
  readonly #path: Field;
  readonly #headers = new Map<string, Field>();

  constructor(format: Format) {
    this.#format = format;
    this.#method = format.field("method");
    this.#path = format.field("path");
    const user = format.field("user");
    this.#headers.set("cf-connecting-ip", format.field("ip"));
    this.#headers.set("referer", format.field("referer"));
    this.#headers.set("user-agent", format.field("agent"));
    const authorization = this.#named("authorization");
    // A server logs the user and not the header, so the user stands in for it: each still has one budget.
    this.#headers.set("authorization", () => {
      const name = user();
      return authorization() ?? (name === undefined ? undefined : `User ${name}`);
    });
  }

  get method(): string {
    return this.#method() ?? "GET";
  }

  /** The path as the platform passes it to the Worker. */
  get path(): string {
    const path = this.#path() ?? "/";
    if (/^\/[\w/-]*$/.test(path)) return path;
    const url = `http://localhost${path.startsWith("/") ? "" : "/"}${path}`;
    return URL.canParse(url) ? new URL(url).pathname : path;
  }

  get(name: string): string | undefined {
    return this.header(name)();
  }

  /** Returns a function that returns a header; `absent` if no line of this format has it. */
  header(name: string): Field {
    let header = this.#headers.get(name);
    if (header === undefined) {
      header = this.#named(name);
      this.#headers.set(name, header);
    }
    return header;
  }

  /** Returns a function that returns a header, by the names that logs use for it. */
  #named(name: string): Field {
    const titled = name.replace(/(^|-)[a-z]/g, (letters) => letters.toUpperCase());
    const names = [name, `http_${name.replaceAll("-", "_")}`].concat(
      ...[name, titled].map((each) => [`headers.${each}`, `req.headers.${each}`, `request.headers.${each}`]),
    );
    const fields = names.map((each) => this.#format.field(each)).filter((field) => field !== absent);
    if (fields.length === 0) return absent;
    return () => {
      for (const field of fields) {
        const value = field();
        if (value !== undefined) return value;
      }
      return undefined;
    };
  }
}
