import type { Policy } from "../index.ts";
import { printable } from "../printable.ts";
import type { CandidateSummary, NewKeysSummary } from "./candidate.ts";
import type { OnlyDeniedKeys } from "./difference.ts";
import type { FieldSample } from "./samples.ts";
import type { StorySummary } from "./story.ts";
import type { Suggestion } from "./suggest.ts";
import { count, counted, inWords, limitInWords, moment, percent, span } from "./words.ts";

/** A table in words: its first column names the rows. */
export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Returns the table of what each candidate denied. */
export const comparisonTable = (candidates: readonly CandidateSummary[]): Table => ({
  head: ["", "denied", "of hits", "keys ever denied", "of keys"],
  rows: candidates.map(({ name, denied, hits, keysDenied, keys }) => [
    name,
    count(denied),
    percent(denied, hits),
    count(keysDenied),
    percent(keysDenied, keys),
  ]),
});

/** Returns a candidate in five figures, or six if keys were banned: name, number and share. */
export const figuresOf = ({
  hits,
  allowed,
  denied,
  keys,
  keysDenied,
  keysBanned = 0,
}: CandidateSummary): readonly (readonly [name: string, number: string, share: string])[] => {
  const banned = ["keys ever banned", count(keysBanned), percent(keysBanned, keys)] as const;
  return [
    ["hits", count(hits), ""],
    ["allowed", count(allowed), percent(allowed, hits)],
    ["denied", count(denied), percent(denied, hits)],
    ["keys", count(keys), ""],
    ["keys ever denied", count(keysDenied), percent(keysDenied, keys)],
    ...(keysBanned > 0 ? [banned] : []),
  ];
};

/** Returns the table of each rule's hits. */
export const rulesTable = ({ rules = [] }: CandidateSummary): Table => ({
  head: ["", "hits", "denied", "of hits"],
  rows: rules.map(({ rule, name, hits, denied, shadow }) => [
    `rule ${rule}: ${name}${shadow ? " (shadow)" : ""}`,
    count(hits),
    count(denied),
    percent(denied, hits),
  ]),
});

/** Returns notes on hits without a rule or a key, and on those with too many new keys. */
export const ruleNotes = ({ unlimited = 0, refused = 0, newKeys }: CandidateSummary): readonly string[] => [
  ...(unlimited > 0 ? [`${counted(unlimited, "hit")} matched no rule.`] : []),
  ...(refused > 0 ? [`${counted(refused, "hit")} denied for a missing key.`] : []),
  ...(newKeys === undefined ? [] : [newKeysInWords(newKeys)]),
];

/** The most addresses in a sentence; the rest is in JSON. */
const mostAddresses = 3;

function newKeysInWords({ denied, addresses, worst }: NewKeysSummary): string {
  const named = worst.slice(0, mostAddresses).map((each) => `${shown(each.address)} (${count(each.denied)})`);
  return `${counted(denied, "hit")} denied for too many new keys of ${addresses} ${addresses === 1 ? "address" : "addresses"}: ${named.join(", ")}${addresses > named.length ? ", …" : "."}`;
}

/** Returns an amount in dollars with two digits that count. */
function usd(amount: number): string {
  if (amount >= 0.01 || amount === 0) return dollars.format(amount);
  return amount < 0.0001 ? "< 0.0001" : amount.toPrecision(2);
}

const dollars = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** Returns the table of what each mode would cost; `undefined` if that was not estimated. */
export function priceTable({ price }: CandidateSummary): Table | undefined {
  if (price === undefined) return undefined;
  const { modes, perMonth } = price;
  return {
    head: [
      "as a Worker",
      "object requests",
      "rows written",
      "USD",
      ...(perMonth === undefined ? [] : ["USD a month"]),
    ],
    rows: modes.map((mode) => [
      mode.mode,
      count(mode.objectRequests),
      count(mode.rowsWritten),
      usd(mode.usd),
      ...(perMonth === undefined ? [] : [usd(mode.usd * perMonth)]),
    ]),
  };
}

/** Returns what the prices are of. */
export const priceNote = ({ price }: CandidateSummary): string =>
  price === undefined
    ? ""
    : `An estimate through one isolate, by the prices of ${price.asOf}; the Worker's own requests are not in it.`;

/** Returns the table of the keys that were denied most. */
export const worstTable = ({ worst, keysBanned = 0 }: CandidateSummary): Table => ({
  head: ["denied most", "denied", "of hits", "longest wait", ...(keysBanned > 0 ? ["by a ban"] : [])],
  rows: worst.map(({ key, hits, denied, longestWait, banned = 0 }) => [
    shown(key),
    count(denied),
    count(hits),
    span(longestWait),
    ...(keysBanned > 0 ? [count(banned)] : []),
  ]),
});

/** The most keys of which samples are shown; the rest is in JSON. */
const mostSampled = 5;

/** A key with many denials, and the fields of its denied lines in words. */
export interface SampledKey {
  readonly key: string;
  readonly fields: readonly (readonly [name: string, words: string])[];
}

/** Returns the paths, agents and users of the keys that were denied most. */
export const sampledKeys = ({ worst }: CandidateSummary): readonly SampledKey[] =>
  worst.slice(0, mostSampled).flatMap(({ key, samples }) => {
    const { lines = 0, paths, agents, users } = samples ?? {};
    const fields = Object.entries({ paths, agents, users }).flatMap(([name, sample]) =>
      sample === undefined ? [] : [[name, sampleInWords(sample, lines)] as const],
    );
    return fields.length === 0 ? [] : [{ key: shown(key), fields }];
  });

function sampleInWords({ most, different, isMore = false }: FieldSample, lines: number): string {
  const texts = most.map(({ text, times }) => `${shown(text)} ${percent(times, lines)}`);
  const rest = different - most.length;
  const more = rest > 0 ? [`${count(rest)}${isMore ? "+" : ""} more`] : [];
  return [...texts, ...more].join(", ");
}

/** Returns the table of the keys that only one of two policies denied. */
export const onlyDeniedTable = ({ worst }: OnlyDeniedKeys): Table => ({
  head: ["key", "denied", "of hits"],
  rows: worst.map(({ key, hits, denied }) => [shown(key), count(denied), count(hits)]),
});

/** Returns a sentence about the keys that only one of two policies denied. */
export const onlyDeniedInWords = ({ by, keys, denied }: OnlyDeniedKeys): string =>
  keys === 0
    ? `No key is denied only by ${by}.`
    : `${counted(keys, "key")} denied only by ${by}, ${counted(denied, "hit")} of ${keys === 1 ? "it" : "theirs"}.`;

/** The most rows of a story; the rest is in JSON. */
const mostRows = 40;

/** Returns the table of one key's story: hits of the same result are one row. */
export const storyTable = ({ chapters }: StorySummary): Table => ({
  head: ["from", "to", "hits", "result", "remaining", "longest wait"],
  rows: chapters
    .slice(0, mostRows)
    .map(({ from, to, hits, allowed, remaining, longestWait }) => [
      moment(from),
      moment(to).slice(moment(from).slice(0, 10) === moment(to).slice(0, 10) ? 11 : 0),
      count(hits),
      allowed ? "allowed" : "denied",
      count(remaining),
      allowed ? "" : span(longestWait),
    ]),
});

/** Returns how many rows a story has beside its table; empty if none. */
export const storyRest = ({ chapters, more }: StorySummary): string => {
  const rest = chapters.length - mostRows + more;
  return rest > 0 ? `And ${counted(rest, "change")} more.` : "";
};

/** Returns a key as it is shown: without what a client may have sent to change the terminal, and cut short. */
function shown(key: string): string {
  const text = printable(key);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** Returns the table of the smallest limits under which shares of the keys are never denied, the given one first. */
export function suggestionsTable(suggestions: readonly Suggestion[]): Table {
  const [first] = suggestions;
  const shares = first?.others.map(({ percent }) => `${percent} %`) ?? [];
  return {
    head: ["", `${first?.percent} %`, "keys denied", ...shares],
    rows: suggestions.map(({ policy, field, limit, keys, keysDenied, others }) => [
      // The limit is the same whether denied hits count, since no hit was denied when it was measured.
      inWords({ ...policy, [field]: "…" } as unknown as Policy, false),
      limitInWords(limit),
      `${count(keysDenied)} (${percent(keysDenied, keys)})`,
      ...others.map((other) => limitInWords(other.limit)),
    ]),
  };
}
