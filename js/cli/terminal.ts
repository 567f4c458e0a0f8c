import type { Policy } from "../index.ts";
import type { CandidateSummary } from "../replay/candidate.ts";
import type { ReplaySummary } from "../replay/replay.ts";
import type { Suggestion } from "../replay/suggest.ts";
import type { TimelineSummary } from "../replay/timeline.ts";
import type { LeftOut } from "../replay/unread.ts";
import { count, counted, ends, inWords, limitInWords, moment, percent, span } from "../replay/words.ts";

const isColoured = process.stdout.isTTY === true && !process.env["NO_COLOR"];
const coloured = (code: number) => (text: string) => (isColoured ? `\x1b[${code}m${text}\x1b[0m` : text);
const bold = coloured(1);
const dim = coloured(2);
const red = coloured(31);
const green = coloured(32);

/** Returns a summary for people, on a terminal. */
export function terminalReport(summary: ReplaySummary): string {
  const { candidates, suggestions } = summary;
  const parts = [
    head(summary),
    candidates.length > 1 ? comparison(candidates) : "",
    ...candidates.map(details),
    suggestions.length > 0 ? suggested(suggestions) : "",
    leftOut("that cannot be read", summary.unreadable),
    leftOut("without a key", summary.withoutKey),
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function head({ lines, from, to, key, unreadable, withoutKey, late }: ReplaySummary): string {
  const when = from === undefined || to === undefined ? "" : `, ${moment(from)} to ${moment(to)} UTC`;
  const less = [
    unreadable.count > 0 ? `${count(unreadable.count)} cannot be read` : "",
    withoutKey.count > 0 ? `${count(withoutKey.count)} without ${key.join(", ")}` : "",
    late > 0 ? `${count(late)} too far out of order (see --sort-window)` : "",
  ].filter((part) => part !== "");
  return `${bold(counted(lines, "line"))}${when}${less.length === 0 ? "" : `\n${less.join("; ")}`}`;
}

function comparison(candidates: readonly CandidateSummary[]): string {
  const rows = candidates.map(({ name, denied, hits, keysDenied, keys }) => [
    name,
    count(denied),
    percent(denied, hits),
    count(keysDenied),
    percent(keysDenied, keys),
  ]);
  return table(["", "denied", "of hits", "keys denied", "of keys"], rows);
}

function details(candidate: CandidateSummary): string {
  const { name, hits, allowed, denied, keys, keysDenied, worst, timeline } = candidate;
  const figures = [
    ["hits", count(hits), ""],
    ["allowed", count(allowed), percent(allowed, hits)],
    ["denied", count(denied), percent(denied, hits)],
    ["keys", count(keys), ""],
    ["keys ever denied", count(keysDenied), percent(keysDenied, keys)],
  ];
  const width = Math.max(...figures.map(([, number]) => number?.length ?? 0));
  const lines = figures.map(([name = "", number = "", share = ""]) =>
    `  ${name.padEnd(18)}${number.padStart(width)}  ${share.padStart(10)}`.trimEnd(),
  );
  return [
    bold(name),
    lines.join("\n"),
    rulesTable(candidate),
    worst.length === 0 ? "" : worstTable(candidate),
    hits === 0 ? "" : plot(timeline),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** What each rule did, where there are rules. */
function rulesTable({ rules, unlimited = 0, refused = 0 }: CandidateSummary): string {
  if (rules === undefined) return "";
  const rows = rules.map(({ rule, hits, denied, shadow }) => [
    `rule ${rule}${shadow ? " (shadow)" : ""}`,
    count(hits),
    count(denied),
    percent(denied, hits),
  ]);
  const notes = [
    unlimited > 0 ? `${count(unlimited)} hits under no rule` : "",
    refused > 0 ? `${count(refused)} refused for lack of a key` : "",
  ].filter((note) => note !== "");
  return [indented(table(["", "hits", "denied", ""], rows)), ...notes.map((note) => `  ${note}`)].join("\n");
}

function worstTable({ worst }: CandidateSummary): string {
  const rows = worst.map(({ key, hits, denied, longestWait }) => [
    printable(key),
    count(denied),
    count(hits),
    span(longestWait),
  ]);
  return indented(table(["denied most", "denied", "of hits", "longest wait"], rows));
}

/** Blocks from low to high. */
const blocks = " ▁▂▃▄▅▆▇█";

function plot({ start, step, allowed, denied }: TimelineSummary): string {
  const most = Math.max(...allowed.map((number, at) => number + (denied[at] ?? 0)));
  const bars = (counts: readonly number[]) =>
    counts.map((number) => blocks[Math.ceil((number / most) * 8)]).join("");
  const [from = "", to = ""] = ends({ start, step, allowed });
  const gap = " ".repeat(Math.max(1, allowed.length - from.length - to.length));
  return [
    `  allowed  ${green(bars(allowed))}`,
    `  denied   ${red(bars(denied))}`,
    dim(`           ${from}${gap}${to}`),
    dim(`           each column ${span(step)}, the highest ${counted(most, "hit")}`),
  ].join("\n");
}

function suggested(suggestions: readonly Suggestion[]): string {
  const [first] = suggestions;
  const rows = suggestions.map(({ policy, field, limit, keys, keysDenied, others }) => [
    inWords({ ...policy, [field]: "…" } as unknown as Policy),
    limitInWords(limit),
    `${count(keysDenied)} (${percent(keysDenied, keys)})`,
    ...others.map(({ limit }) => limitInWords(limit)),
  ]);
  const shares = first?.others.map(({ percent }) => `${percent} %`) ?? [];
  return [
    bold(
      `The smallest limits under which ${first?.percent} % of the keys are never denied, and other shares`,
    ),
    table(["", `${first?.percent} %`, "keys denied", ...shares], rows),
  ].join("\n\n");
}

function leftOut(what: string, { count: total, examples }: LeftOut): string {
  if (total === 0) return "";
  const lines = examples.map(
    ({ file, line, text, reason }) => `  ${file}:${line}: ${reason}\n    ${dim(text)}`,
  );
  const more = total > examples.length ? `\n  and ${count(total - examples.length)} more` : "";
  return `${bold(`${counted(total, "line")} ${what}`)}\n${lines.join("\n")}${more}`;
}

/** A key may hold whatever a client sent: nothing that a terminal obeys, and not too much. */
function printable(key: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is replaced.
  const text = key.replace(/[\x00-\x1f\x7f-\x9f]/g, "\ufffd");
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

const indented = (text: string) => text.replace(/^(?=.)/gm, "  ");

/** Columns, the first to the left and the others to the right. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
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
