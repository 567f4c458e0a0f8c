import type { CandidateSummary } from "../access-log/candidate.ts";
import type { Difference } from "../access-log/difference.ts";
import type { ReplaySummary } from "../access-log/replay.ts";
import {
  comparisonTable,
  figuresOf,
  onlyDeniedInWords,
  onlyDeniedTable,
  priceNote,
  priceTable,
  ruleNotes,
  rulesTable,
  type SampledKey,
  sampledKeys,
  storyRest,
  storyTable,
  suggestionsTable,
  type Table,
  worstTable,
} from "../access-log/tables.ts";
import type { TimelineSummary } from "../access-log/timeline.ts";
import type { LeftOut } from "../access-log/unread.ts";
import { count, counted, ends, marksOf, moment, span } from "../access-log/words.ts";
import { printable } from "../printable.ts";

const isColoured = process.stdout.isTTY === true && !process.env["NO_COLOR"];
const coloured = (code: number) => (text: string) =>
  isColoured ? `\x1b[${code}m${printable(text)}\x1b[0m` : printable(text);
const bold = coloured(1);
const dim = coloured(2);
const red = coloured(31);
const green = coloured(32);

/** Joins the parts that are not empty. */
const stacked = (parts: readonly string[], gap: string): string =>
  parts.filter((part) => part !== "").join(gap);

/** Returns a summary for a terminal. */
export function terminalReport(summary: ReplaySummary): string {
  const { candidates, suggestions, unreadable, withoutKey, difference } = summary;
  const parts = [
    head(summary),
    candidates.length > 1 ? table(comparisonTable(candidates)) : "",
    ...candidates.map(details),
    difference === undefined ? "" : compared(difference),
    suggestions.length > 0 ? `${bold(spared)}\n\n${table(suggestionsTable(suggestions))}` : "",
    leftOut("that cannot be read", unreadable),
    leftOut("without a key", withoutKey),
  ];
  return `${stacked(parts, "\n\n")}\n`;
}

const spared = "The smallest limit or rate under which that share of the keys is never denied";

function compared({ first, second, both }: Difference): string {
  const sides = [first, second].map((side) =>
    stacked([onlyDeniedInWords(side), side.keys === 0 ? "" : table(onlyDeniedTable(side))], "\n\n"),
  );
  const shared = `${counted(both, "key")} denied by both.`;
  return stacked([bold("Whom only one of them denies"), ...[...sides, shared].map(indented)], "\n\n");
}

function head({ lines, from, to, key, unreadable, withoutKey, late, filtered }: ReplaySummary): string {
  const when = from === undefined || to === undefined ? "" : `, ${moment(from)} to ${moment(to)} UTC`;
  const less = [
    unreadable.count > 0 ? `${count(unreadable.count)} cannot be read` : "",
    withoutKey.count > 0 ? `${count(withoutKey.count)} without ${key.join(", ")}` : "",
    filtered > 0 ? `${count(filtered)} left out by --where or --only` : "",
    late > 0 ? `${count(late)} too far out of order (see --sort-window)` : "",
  ];
  return stacked([`${bold(counted(lines, "line"))}${when}`, stacked(less, "; ")], "\n");
}

function details(candidate: CandidateSummary): string {
  const { name, hits, rules, worst, timeline, story } = candidate;
  const prices = priceTable(candidate);
  const rulesPart =
    rules === undefined ? "" : stacked([table(rulesTable(candidate)), ...ruleNotes(candidate)], "\n");
  const parts = [
    figures(candidate),
    rulesPart,
    worst.length === 0 || story !== undefined ? "" : table(worstTable(candidate)),
    ...(story === undefined ? sampledKeys(candidate).map(sampled) : []),
    hits === 0 ? "" : plot(timeline),
    prices === undefined ? "" : stacked([table(prices), dim(priceNote(candidate))], "\n"),
    story === undefined ? "" : stacked([table(storyTable(story)), storyRest(story)], "\n"),
  ];
  return stacked([bold(name), ...parts.map(indented)], "\n\n");
}

/** Returns who a key's denied hits came from. */
const sampled = ({ key, fields }: SampledKey) =>
  [`denied of ${key}`, ...fields.map(([name, words]) => `  ${dim(name.padEnd(8))}${printable(words)}`)].join(
    "\n",
  );

function figures(candidate: CandidateSummary): string {
  const all = figuresOf(candidate);
  const width = Math.max(...all.map(([, number]) => number.length));
  return all
    .map(([name, number, share]) =>
      `${name.padEnd(18)}${number.padStart(width)}  ${share.padStart(10)}`.trimEnd(),
    )
    .join("\n");
}

/** Blocks from low to high. */
const blocks = " ▁▂▃▄▅▆▇█";

function plot(timeline: TimelineSummary): string {
  const { step, allowed, denied } = timeline;
  const most = Math.max(...allowed.map((number, at) => number + (denied[at] ?? 0)));
  const bars = (counts: readonly number[]) =>
    counts.map((number) => blocks[Math.ceil((number / most) * 8)]).join("");
  const [from, to] = ends(timeline);
  return [
    `allowed  ${green(bars(allowed))}`,
    `denied   ${red(bars(denied))}`,
    ...axis(timeline).map((line) => dim(`         ${line}`)),
    dim(`         ${from} to ${to} UTC, each column ${span(step)}, the highest ${counted(most, "hit")}`),
  ].join("\n");
}

/** How many columns a mark of the axis takes, with a blank. */
const markWidth = 7;

/** Returns the axis below a plot: a mark, and the time beside it. None if the plot is too narrow for one. */
function axis(timeline: TimelineSummary): string[] {
  const { length } = timeline.allowed;
  const marks = marksOf(timeline, Math.floor(length / markWidth));
  let line = "";
  for (const { at, text } of marks) {
    const column = Math.floor(at * length);
    if (column < line.length || column + text.length >= length) continue;
    line = `${line.padEnd(column)}╵${text} `;
  }
  return line === "" ? [] : [line.trimEnd()];
}

function leftOut(what: string, { count: total, examples }: LeftOut): string {
  if (total === 0) return "";
  const lines = examples.map(({ file, line, text, reason }) => `${file}:${line}: ${reason}\n  ${dim(text)}`);
  const more = total > examples.length ? `and ${count(total - examples.length)} more` : "";
  return `${bold(`${counted(total, "line")} ${what}`)}\n${indented(stacked([...lines, more], "\n"))}`;
}

const indented = (text: string) => text.replace(/^(?=.)/gm, "  ");

/** Returns a table, its first column aligned to the left and the others to the right. */
export function table(texts: Table): string {
  const head = texts.head.map(printable);
  const rows = texts.rows.map((row) => row.map(printable));
  const widths = head.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => (row[at] ?? "").length)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join("  ")
      .trimEnd();
  return [dim(line(head)), ...rows.map(line)].join("\n");
}
