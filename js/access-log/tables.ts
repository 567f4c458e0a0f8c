import type { Policy } from "../index.ts";
import type { CandidateSummary } from "./candidate.ts";
import type { Suggestion } from "./suggest.ts";
import { count, counted, inWords, limitInWords, percent, span } from "./words.ts";

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

/** Returns notes on hits without a rule or a key. */
export const ruleNotes = ({ unlimited = 0, refused = 0 }: CandidateSummary): readonly string[] => [
  ...(unlimited > 0 ? [`${counted(unlimited, "hit")} matched no rule.`] : []),
  ...(refused > 0 ? [`${counted(refused, "hit")} denied for a missing key.`] : []),
];

/** Returns the table of the keys that were denied most. */
export const worstTable = ({ worst, keysBanned = 0 }: CandidateSummary): Table => ({
  head: ["denied most", "denied", "of hits", "longest wait", ...(keysBanned > 0 ? ["by a ban"] : [])],
  rows: worst.map(({ key, hits, denied, longestWait, banned = 0 }) => [
    printable(key),
    count(denied),
    count(hits),
    span(longestWait),
    ...(keysBanned > 0 ? [count(banned)] : []),
  ]),
});

/** Returns a key for a terminal: without control characters, which a client may have sent, and cut short. */
function printable(key: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is replaced.
  const text = key.replace(/[\x00-\x1f\x7f-\x9f]/g, "\ufffd");
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
