/** Strings of a message that are no text of the model. */
const labels: ReadonlySet<string> = new Set([
  "id",
  "type",
  "role",
  "object",
  "status",
  "call_id",
  "item_id",
  "tool_call_id",
  "toolCallId",
  "signature",
  "encrypted_content",
  "obfuscation",
  "finish_reason",
  "finishReason",
  "thoughtSignature",
  "mimeType",
  "stop_reason",
  "stop_sequence",
  "mediaType",
  "media_type",
]);

/** Fields that may have a file in base64, or its address. */
const files: ReadonlySet<string> = new Set([
  "data",
  "image",
  "image_url",
  "audio",
  "file",
  "file_data",
  "url",
  "b64_json",
  "partial_image_b64",
]);

/** Stands for a file in a text: as many characters as the tokens of a picture, about. */
const fileText: string = "picture ".repeat(375);

/** Calls `add` with each text of a message or a part of one. */
export function eachText(value: unknown, add: (text: string) => void, field = ""): void {
  if (typeof value === "string") {
    if (labels.has(field)) return;
    if (files.has(field) && isFile(value)) add(fileText);
    else if (value !== "") add(value);
  } else if (typeof value === "number") {
    // A token that is passed as its number.
    add(String(value));
  } else if (Array.isArray(value)) {
    for (const each of value) eachText(each, add, field);
  } else if (ArrayBuffer.isView(value)) {
    add(fileText);
  } else if (typeof value === "object" && value !== null) {
    for (const [name, each] of Object.entries(value)) eachText(each, add, name);
  }
}

const isFile = (text: string) =>
  /^(data:|https?:)/.test(text) || (text.length > 1_000 && /^[\w+/=-]*$/.test(text.slice(0, 1_000)));

/**
 * Counts the tokens of texts without the model's own tokenizer: three characters of ASCII, or two bytes of others, are
 * one. Real tokenizers need fewer for most texts.
 */
export class TokenCount {
  /** Sixths of a token: the characters of ASCII are two, the bytes of others three. */
  #sixths = 0;
  #texts = 0;

  /** Adds a text. */
  add(text: string): void {
    if (text === "") return;
    this.#texts += 1;
    let sixths = 2 * text.length;
    for (let at = 0; at < text.length; at += 1) {
      const unit = text.charCodeAt(at);
      // In UTF-8 two bytes, three, or two for each half of a pair of surrogates.
      if (unit >= 0x80) sixths += unit < 0x800 || (unit & 0xf800) === 0xd800 ? 4 : 7;
    }
    this.#sixths += sixths;
  }

  /** The tokens, rounded up: at least one for each text, since a model streams no parts of tokens. */
  get tokens(): number {
    return Math.max(Math.ceil(this.#sixths / 6), this.#texts);
  }
}
