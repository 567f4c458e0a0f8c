import type { Policy } from "../index.ts";
import type { CandidateSummary } from "./candidate.ts";
import type { ReplaySummary } from "./replay.ts";
import type { Suggestion } from "./suggest.ts";
import type { TimelineSummary } from "./timeline.ts";
import type { LeftOut } from "./unread.ts";
import { count, counted, ends, inWords, limitInWords, moment, percent, span } from "./words.ts";

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** A text within HTML. */
export const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (letter) => entities[letter] as string);

/** Returns a summary as HTML without scripts and styles of its own; `summary.css` is for it. */
export function summaryHtml(summary: ReplaySummary, level: 2 | 3): string {
  const { candidates, suggestions, unreadable, withoutKey } = summary;
  return [
    overview(summary),
    candidates.length > 1 ? comparison(candidates) : "",
    ...candidates.map((candidate) => details(candidate, level)),
    suggestions.length > 0 ? suggested(suggestions, level) : "",
    leftOut("that cannot be read", unreadable, level),
    leftOut("without a key", withoutKey, level),
  ].join("\n");
}

function overview({ lines, from, to, key, unreadable, withoutKey, late }: ReplaySummary): string {
  const when = from === undefined || to === undefined ? "" : ` from ${moment(from)} to ${moment(to)} UTC`;
  const parts = [
    `${counted(lines, "line")}${when}, counted by ${key.join(" and ")}.`,
    unreadable.count > 0 ? `${count(unreadable.count)} cannot be read.` : "",
    withoutKey.count > 0 ? `${count(withoutKey.count)} have no key.` : "",
    late > 0 ? `${count(late)} were too far out of order, and count at the time of the line before.` : "",
  ];
  return `<p class="replay-overview">${escaped(parts.filter((part) => part !== "").join(" "))}</p>`;
}

function comparison(candidates: readonly CandidateSummary[]): string {
  const rows = candidates.map(({ name, denied, hits, keysDenied, keys }) => [
    name,
    count(denied),
    percent(denied, hits),
    count(keysDenied),
    percent(keysDenied, keys),
  ]);
  return table("All of them side by side", ["", "denied", "of hits", "keys ever denied", "of keys"], rows);
}

function details(candidate: CandidateSummary, level: number): string {
  const { name, hits, allowed, denied, keys, keysDenied, worst, timeline, rules } = candidate;
  const figures = [
    figure("hits", count(hits), ""),
    figure("allowed", count(allowed), percent(allowed, hits)),
    figure("denied", count(denied), percent(denied, hits)),
    figure("keys", count(keys), ""),
    figure("keys ever denied", count(keysDenied), percent(keysDenied, keys)),
  ];
  return `<section class="replay-candidate">
<h${level}>${escaped(name)}</h${level}>
<dl class="replay-figures">${figures.join("")}</dl>
${hits === 0 ? "" : plot(timeline)}
${rules === undefined ? "" : rulesTable(candidate)}
${worst.length === 0 ? "" : worstTable(candidate)}
</section>`;
}

const figure = (name: string, number: string, share: string) =>
  `<div class="is-${name.replaceAll(" ", "-")}"><dt>${name}</dt><dd>${number}${share === "" ? "" : ` <small>${escaped(share)}</small>`}</dd></div>`;

/** Bars of allowed hits, and above them of denied ones. Labels are outside, so that the picture can be stretched. */
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
  const told =
    all === 0 ? "none denied" : `denied most from ${moment(timeline.start + busiest * step)} UTC on`;
  const label = `Hits from ${from} to ${to} UTC in steps of ${span(step)}, at most ${count(most)}; ${told}.`;
  return `<figure class="replay-plot">
<figcaption><span class="key-allowed">allowed</span> <span class="key-denied">denied</span> <span class="most">up to ${counted(most, "hit")} in ${span(step)}</span></figcaption>
<svg viewBox="0 0 ${allowed.length} ${height}" preserveAspectRatio="none" role="img" aria-label="${escaped(label)}"><path class="bars-allowed" d="${bars(allowed, [])}"/><path class="bars-denied" d="${bars(denied, allowed)}"/></svg>
<p class="ends"><span>${from}</span><span>${to} UTC</span></p>
</figure>`;
}

function rulesTable({ name, rules = [], unlimited = 0, refused = 0 }: CandidateSummary): string {
  const rows = rules.map(({ rule, hits, denied, shadow }) => [
    `rule ${rule}${shadow ? " (shadow)" : ""}`,
    count(hits),
    count(denied),
    percent(denied, hits),
  ]);
  const notes = [
    unlimited > 0 ? `${counted(unlimited, "hit")} under no rule.` : "",
    refused > 0 ? `${counted(refused, "hit")} refused for lack of a key.` : "",
  ].filter((note) => note !== "");
  const note = notes.length === 0 ? "" : `<p class="replay-note">${notes.join(" ")}</p>`;
  return table(`What each rule of ${name} did`, ["", "hits", "denied", "of hits"], rows) + note;
}

function worstTable({ name, worst }: CandidateSummary): string {
  const most = worst[0]?.denied ?? 1;
  const rows = worst.map(({ key, hits, denied, longestWait }) => [
    key.length > 80 ? `${key.slice(0, 79)}…` : key,
    count(denied),
    count(hits),
    span(longestWait),
  ]);
  const bars = worst.map(({ denied }) => Math.max(1, Math.round((denied / most) * 100)));
  return table(
    `The keys that were denied most by ${name}`,
    ["key", "denied", "of hits", "longest wait"],
    rows,
    bars,
  );
}

function suggested(suggestions: readonly Suggestion[], level: number): string {
  const [first] = suggestions;
  const rows = suggestions.map(({ policy, field, limit, keys, keysDenied, others }) => [
    inWords({ ...policy, [field]: "…" } as unknown as Policy),
    limitInWords(limit),
    `${count(keysDenied)} (${percent(keysDenied, keys)})`,
    ...others.map(({ limit }) => limitInWords(limit)),
  ]);
  const shares = first?.others.map(({ percent }) => `${percent} %`) ?? [];
  const head = ["", `${first?.percent} %`, "keys denied", ...shares];
  return `<section class="replay-candidate">
<h${level}>Limits that spare most keys</h${level}>
${table("The smallest limit under which that share of the keys is never denied", head, rows)}
</section>`;
}

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

/** A table that scrolls by itself where it is too wide; `bars` are widths in percent beside the second column. */
function table(
  caption: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  bars?: readonly number[],
): string {
  const titles = head.map((title) => (title === "" ? "<td></td>" : `<th scope="col">${escaped(title)}</th>`));
  const lines = rows.map(([name = "", ...cells], at) => {
    const bar = bars === undefined ? "" : barOf(bars[at] ?? 0);
    return `<tr><th scope="row">${escaped(name)}</th>${cells
      .map((cell, column) => `<td>${column === 0 ? bar : ""}${escaped(cell)}</td>`)
      .join("")}</tr>`;
  });
  return `<div class="replay-table" tabindex="0" role="region" aria-label="${escaped(caption)}"><table>
<caption>${escaped(caption)}</caption>
<thead><tr>${titles.join("")}</tr></thead>
<tbody>${lines.join("")}</tbody>
</table></div>`;
}

const barOf = (width: number) =>
  `<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width="${width}" height="10"/></svg>`;
