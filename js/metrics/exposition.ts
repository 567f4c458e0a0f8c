/** The labels of a sample. */
export type Labels = Readonly<Record<string, string>>;

/** The media type of the text, for the header `Content-Type`. */
export const contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/** The longest value of a label, in UTF-16 units: keys may come from requests. */
const maxLabel = 256;

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };

/** Returns a value without what text cannot carry, cut to its longest length. */
export function labelValue(value: unknown): string {
  const text = String(value);
  const cut = text.length > maxLabel ? `${text.slice(0, maxLabel - 1)}…` : text;
  // A lone surrogate is not valid UTF-8, and a control character is unreadable.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced.
  return cut.replace(/\p{Surrogate}|[\0-\x09\x0b-\x1f\x7f]/gu, "\ufffd");
}

const labelsText = (labels: Labels): string => {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replace(/[\\"\n]/g, (found) => escapes[found] as string)}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
};

/** Returns a line of the text. */
export const sample = (name: string, labels: Labels, value: number): string =>
  `${name}${labelsText(labels)} ${value}\n`;

/** A kind of metric. */
export type Kind = "counter" | "gauge" | "histogram";

/** Returns the lines that come before the samples of a metric. */
export const heading = (name: string, kind: Kind, help: string): string =>
  `# TYPE ${name} ${kind}\n${name.endsWith("_seconds") ? `# UNIT ${name} seconds\n` : ""}# HELP ${name} ${help}\n`;
