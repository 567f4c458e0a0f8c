// Metrics beside those of another library, and of several processes together.

/** Returns OpenMetrics text in the older format of Prometheus, without its end, so that it can follow other metrics. */
export function prometheusText(text: string): string {
  const counters = new Set<string>();
  for (const [, name] of text.matchAll(/^# TYPE (\S+) counter$/gm)) counters.add(name as string);
  return text
    .replace(/^# (UNIT .*|EOF)\n/gm, "")
    .replace(/^# (TYPE|HELP) (\S+)/gm, (line, _, name) => (counters.has(name) ? `${line}_total` : line));
}

/** The lines of one metric: those before its samples, and its samples by name and labels. */
interface Family {
  readonly heading: string[];
  readonly samples: Map<string, number>;
}

/**
 * Returns the sum of the texts of several processes: each sample is the sum of those with the same name and labels.
 *
 * @example
 * ```ts
 * import { metrics, sumOfMetrics } from "tollgate/metrics";
 *
 * const counted = metrics();
 * const [mine, ofAnother] = [counted.text(), counted.text()];
 * console.log(sumOfMetrics([mine, ofAnother]).endsWith("# EOF\n")); // => true
 * ```
 */
export function sumOfMetrics(texts: readonly string[]): string {
  const families = new Map<string, Family>();
  for (const text of texts) addText(families, text);
  let sum = "";
  for (const { heading, samples } of families.values()) {
    for (const line of heading) sum += `${line}\n`;
    for (const [series, value] of samples) sum += `${series} ${value}\n`;
  }
  return `${sum}# EOF\n`;
}

function addText(families: Map<string, Family>, text: string): void {
  let family: Family | undefined;
  let isNew = false;
  for (const line of text.split("\n")) {
    const [, kind, name = ""] = /^# (TYPE|UNIT|HELP) (\S+)/.exec(line) ?? [];
    if (kind === "TYPE") {
      family = families.get(name);
      isNew = family === undefined;
      family ??= { heading: [], samples: new Map() };
      families.set(name, family);
    }
    if (kind !== undefined && isNew) family?.heading.push(line);
    if (kind !== undefined || line === "" || line.startsWith("#")) continue;
    // A label may have spaces; the value has none.
    const end = line.lastIndexOf(" ");
    const series = line.slice(0, end);
    family?.samples.set(series, (family.samples.get(series) ?? 0) + Number(line.slice(end + 1)));
  }
}
