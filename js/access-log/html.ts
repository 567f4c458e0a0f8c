import { printable } from "../printable.ts";
import type { CandidateSummary } from "./candidate.ts";
import type { Difference } from "./difference.ts";
import type { ReplaySummary } from "./replay.ts";
import type { Suggestion } from "./suggest.ts";
import {
  comparisonTable,
  figuresOf,
  onlyDeniedInWords,
  onlyDeniedTable,
  priceNote,
  priceTable,
  ruleNotes,
  rulesTable,
  sampledKeys,
  storyRest,
  storyTable,
  suggestionsTable,
  type Table,
  worstTable,
} from "./tables.ts";
import type { TimelineSummary } from "./timeline.ts";
import type { LeftOut } from "./unread.ts";
import { count, counted, ends, marksOf, moment, span } from "./words.ts";

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Returns a text escaped for HTML. */
export const escaped = (text: string): string =>
  printable(text).replace(/[&<>"]/g, (letter) => entities[letter] as string);

/** Returns a summary as HTML without scripts and inline styles; its style sheet is `summary.css`. */
export function summaryHtml(summary: ReplaySummary, level: 2 | 3): string {
  const { candidates, suggestions, unreadable, withoutKey, difference } = summary;
  return [
    overview(summary),
    candidates.length > 1 ? table("Comparison", comparisonTable(candidates)) : "",
    ...candidates.map((candidate) => details(candidate, level)),
    difference === undefined ? "" : compared(difference, level),
    suggestions.length > 0 ? suggested(suggestions, level) : "",
    leftOut("that could not be read", unreadable, level),
    leftOut("without a key", withoutKey, level),
  ].join("\n");
}

function compared({ first, second, both }: Difference, level: number): string {
  const sides = [first, second].map((side) =>
    side.keys === 0
      ? `<p class="replay-note">${escaped(onlyDeniedInWords(side))}</p>`
      : table(onlyDeniedInWords(side), onlyDeniedTable(side)),
  );
  return `<section class="replay-candidate">
<h${level}>Whom only one of them denies</h${level}>
${sides.join("\n")}
<p class="replay-note">${counted(both, "key")} denied by both.</p>
</section>`;
}

function overview({ lines, from, to, key, unreadable, withoutKey, late, filtered }: ReplaySummary): string {
  const when = from === undefined || to === undefined ? "" : ` from ${moment(from)} to ${moment(to)} UTC`;
  const parts = [
    `${counted(lines, "line")}${when}, counted by ${key.length === 0 ? "the keys of the rules" : key.join(" and ")}.`,
    unreadable.count > 0 ? `${counted(unreadable.count, "line")} could not be read.` : "",
    withoutKey.count > 0 ? `${counted(withoutKey.count, "line")} without a key.` : "",
    filtered > 0 ? `${counted(filtered, "line")} left out by conditions.` : "",
    late > 0 ? `${counted(late, "line")} too far out of order, counted at the time of the line before.` : "",
  ];
  return `<p class="replay-overview">${escaped(parts.filter((part) => part !== "").join(" "))}</p>`;
}

function details(candidate: CandidateSummary, level: number): string {
  const { name, hits, worst, timeline, rules, story } = candidate;
  const notes = ruleNotes(candidate).join(" ");
  const parts = [
    `<dl class="replay-figures">${figuresOf(candidate).map(figure).join("")}</dl>`,
    hits === 0 ? "" : plot(timeline),
    rules === undefined ? "" : table(`Hits by rule of ${name}`, rulesTable(candidate)),
    notes === "" ? "" : `<p class="replay-note">${notes}</p>`,
    worst.length === 0 || story !== undefined
      ? ""
      : table(mostDenied(name), keysTable(candidate), widths(candidate)),
    story === undefined ? sampled(candidate) : "",
    priced(candidate),
    story === undefined ? "" : table(`Its hits under ${name}, UTC`, storyTable(story)),
    story === undefined || storyRest(story) === "" ? "" : `<p class="replay-note">${storyRest(story)}</p>`,
  ];
  return `<section class="replay-candidate">
<h${level}>${escaped(name)}</h${level}>
${parts.join("\n")}
</section>`;
}

/** Returns who the denied hits of the keys that were denied most came from. */
function sampled(candidate: CandidateSummary): string {
  const keys = sampledKeys(candidate).map(({ key, fields }) => {
    const list = fields.map(([name, words]) => `<dt>${name}</dt><dd>${escaped(words)}</dd>`);
    return `<li><code>${escaped(key)}</code><dl>${list.join("")}</dl></li>`;
  });
  if (keys.length === 0) return "";
  return `<p class="replay-note">Whose hits they were</p>\n<ul class="replay-samples">${keys.join("")}</ul>`;
}

function priced(candidate: CandidateSummary): string {
  const prices = priceTable(candidate);
  if (prices === undefined) return "";
  const titles = ["mode", ...prices.head.slice(1)];
  const shown = table("What it would cost as a Worker on Cloudflare", { ...prices, head: titles });
  return `${shown}\n<p class="replay-note">${escaped(priceNote(candidate))}</p>`;
}

const mostDenied = (name: string) => `Keys denied most by ${name}`;

/** Returns the table of the keys that were denied most. Its caption says so: the terminal has only the first title. */
function keysTable(candidate: CandidateSummary): Table {
  const { head, rows } = worstTable(candidate);
  return { head: ["key", ...head.slice(1)], rows };
}

/** Returns the widths of the keys' bars, in percent. */
const widths = ({ worst }: CandidateSummary): readonly number[] =>
  worst.map(({ denied }) => Math.max(1, Math.round((denied / (worst[0]?.denied ?? 1)) * 100)));

const figure = ([name, number, share]: readonly [string, string, string]) =>
  `<div class="is-${name.replaceAll(" ", "-")}"><dt>${name}</dt><dd>${number}${share === "" ? "" : ` <small>${escaped(share)}</small>`}</dd></div>`;

/** Returns a plot: bars of allowed hits, below those of denied ones. Labels are outside: the plot is stretched. */
function plot(timeline: TimelineSummary): string {
  const { step, allowed, denied } = timeline;
  const most = Math.max(...allowed.map((number, at) => number + (denied[at] ?? 0)));
  const height = 100;
  const scaled = (number: number) => Number(((number / most) * height).toFixed(2));
  const bars = (counts: readonly number[], below: readonly number[]) =>
    counts
      .map((number, at) => {
        if (number === 0) return "";
        const base = height - scaled(below[at] ?? 0);
        return `M${at} ${base}h.9v${-scaled(number)}h-.9z`;
      })
      .join("");
  const [from, to] = ends(timeline);
  const all = denied.reduce((sum, number) => sum + number, 0);
  const busiest = denied.indexOf(Math.max(...denied));
  const denials =
    all === 0 ? "none denied" : `most denied in the step from ${moment(timeline.start + busiest * step)} UTC`;
  const label = `Hits from ${from} to ${to} UTC in steps of ${span(step)}, at most ${count(most)}; ${denials}.`;
  return `<figure class="replay-plot">
<figcaption><span class="key-allowed">allowed</span> <span class="key-denied">denied</span> <span class="most">each bar ${span(step)}, at most ${counted(most, "hit")}</span></figcaption>
<svg viewBox="0 0 ${allowed.length} ${height}" preserveAspectRatio="none" role="img" aria-label="${escaped(label)}"><path class="bars-allowed" d="${bars(allowed, [])}"/><path class="bars-denied" d="${bars(denied, allowed)}"/></svg>
${axis(timeline)}
<p class="ends"><span>${from}</span><span>${to} UTC</span></p>
</figure>`;
}

/** The most marks of an axis. */
const mostMarks = 6;

/** Returns the axis of a plot. Its texts are not stretched with the plot. */
function axis(timeline: TimelineSummary): string {
  const marks = marksOf(timeline, mostMarks).map(({ at, text }) => {
    const x = `${(at * 100).toFixed(2)}%`;
    return `<line x1="${x}" x2="${x}" y1="0" y2="4"/><text x="${x}" y="15">${text}</text>`;
  });
  return `<svg class="axis" aria-hidden="true">${marks.join("")}</svg>`;
}

const suggested = (suggestions: readonly Suggestion[], level: number) => `<section class="replay-candidate">
<h${level}>Suggested limits</h${level}>
${table("The smallest limit or rate under which each share of the keys is never denied", suggestionsTable(suggestions))}
</section>`;

function leftOut(what: string, { count: total, examples }: LeftOut, level: number): string {
  if (total === 0) return "";
  const items = examples.map(
    ({ file, line, text, reason }) =>
      `<li>${escaped(file)}:${line}: ${escaped(reason)}<br><code>${escaped(text)}</code></li>`,
  );
  const more =
    total > examples.length ? `<p class="replay-note">And ${count(total - examples.length)} more.</p>` : "";
  return `<section class="replay-candidate">
<h${level}>${counted(total, "line")} ${what}</h${level}>
<ul class="replay-lines">${items.join("")}</ul>${more}
</section>`;
}

/** Returns a table that scrolls if it is too wide; `bars` are widths in percent beside the second column. */
function table(caption: string, { head, rows }: Table, bars?: readonly number[]): string {
  const titles = head.map((title) =>
    title === "" ? "<td></td>" : `<th scope="col">${unbroken(escaped(title))}</th>`,
  );
  const lines = rows.map(([name = "", ...cells], at) => {
    const bar = bars === undefined ? "" : barOf(bars[at] ?? 0);
    return `<tr><th scope="row">${escaped(name)}</th>${cells
      .map((cell, column) => `<td>${column === 0 ? bar : ""}${escaped(cell)}</td>`)
      .join("")}</tr>`;
  });
  return `<div class="replay-table" tabindex="0" role="region" aria-label="${escaped(caption)}"><table>
<caption><span>${escaped(caption)}</span></caption>
<thead><tr>${titles.join("")}</tr></thead>
<tbody>${lines.join("")}</tbody>
</table></div>`;
}

/** Keeps a number and its percent sign on one line. */
const unbroken = (text: string) => text.replaceAll(" %", "\u00a0%");

const barOf = (width: number) =>
  `<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width="${width}" height="10"/></svg>`;
