import type { Table } from "../access-log/tables.ts";
import { count, counted, moment, span } from "../access-log/words.ts";
import { printable } from "../printable.ts";
import type { Command } from "./command.ts";
import { exit, withReplies } from "./errors.ts";
import { exceptionInWords } from "./exception-words.ts";
import {
  type Denial,
  type KeyReport,
  type KeyStory,
  type KeyTarget,
  keyNotes,
  keyOptions,
  keyUsage,
  limitOrNone,
  type PolicyDecision,
  type PolicyReport,
  readTarget,
} from "./key-target.ts";
import type { Given, Options } from "./options.ts";
import { print, printJson } from "./output.ts";
import { table } from "./terminal.ts";

/** What a command has to say of a key: as JSON beside its name, and as text. */
type Result = readonly [json: object, text: string];

/** What keys of a command differ in. */
interface KeyCommand extends Pick<Command, "name" | "summary"> {
  readonly usage?: string;
  readonly options?: Options;
  readonly notes?: string;
  /** Whether a Worker needs no policy. */
  readonly anyPolicy?: boolean;
  /** Whether numbers follow the key. */
  readonly hasAssignments?: boolean;
}

/** Returns a command that does something with one key. `work` reads its options before the place is called. */
export function keyCommand(
  {
    options = {},
    usage = keyUsage,
    notes = "",
    anyPolicy = false,
    hasAssignments = false,
    ...rest
  }: KeyCommand,
  work: (given: Given) => (target: KeyTarget) => Promise<Result>,
): Command {
  const all: Options = { ...keyOptions, ...options };
  const run = async (given: Given) => {
    const perform = work(given);
    const target = await readTarget(given, { anyPolicy, hasAssignments });
    try {
      const [json, text] = await withReplies(target.place, () => perform(target));
      if (given.has("json")) printJson({ ...target.json, ...json });
      else print(`${text}\n`);
      return exit.ok;
    } finally {
      target.close();
    }
  };
  return { ...rest, usage, options: all, notes: `${notes}\n${keyNotes}`, run };
}

/** `tollgate get`: reads a key's count. */
export const get: Command = keyCommand(
  { name: "get", summary: "Prints what counts for a key in Redis or a deployed Worker, and when it expires" },
  () => async (target) => {
    const report = await target.report();
    return [report, reportInWords(report, target.hint)];
  },
);

/** `tollgate reset`: forgets what counts for a key. */
export const reset: Command = keyCommand(
  {
    name: "reset",
    summary: "Resets a key in Redis or a deployed Worker",
    options: {
      reservations: { help: "drop its open reservations too" },
    },
  },
  (given) => async (target) => {
    const wasKnown = await target.reset(given.has("reservations"));
    const text = wasKnown ? `${target.words} was reset.` : `${target.words} had no state.${target.hint}`;
    return [{ reset: wasKnown }, text];
  },
);

/** `tollgate ban`: denies a key for some time. */
export const ban: Command = keyCommand(
  {
    name: "ban",
    summary: "Denies every hit of a key for some time; its limiter needs a policy of algorithm ban",
    usage: `${keyUsage} --for <time>`,
    options: { for: { value: "<time>", help: "how long from now: 1h, 30m, 7d, or milliseconds" } },
  },
  (given) => {
    const length = durationOf(given.required("for"));
    return async (target) => {
      const until = await target.ban(length);
      return [{ bannedUntil: until }, `${target.words} is banned until ${moment(until)} UTC.`];
    };
  },
);

/** `tollgate unban`: lifts a ban. */
export const unban: Command = keyCommand(
  { name: "unban", summary: "Lifts the ban of a key and forgets its past ones" },
  (given) => async (target) => {
    const { wasBanned, others } = await target.unban();
    const by = given.one("policy");
    const named = by === undefined ? "" : ` by ${by}`;
    const text = wasBanned ? `is not banned${named} any more.` : `was not banned${named}.`;
    const rest = others.map(
      ({ policy, bannedUntil = 0 }) => ` ${policy} bans it until ${moment(bannedUntil)} UTC.`,
    );
    return [{ unbanned: wasBanned }, `${target.words} ${text}${rest.join("")}`];
  },
);

/** `tollgate why`: what counts for a key, and its last denials. */
export const why: Command = keyCommand(
  {
    name: "why",
    summary: "Tells why a key is denied: what counts now, when more comes, and its last denials",
    usage: "(<key> | --ip <address> | --part <part>…) (--redis <url> | --url <url>)",
    anyPolicy: true,
  },
  () => async (target) => {
    const story = await target.story();
    return [story, storyInWords(story, target.hint)];
  },
);

/** Returns a duration as limiters take it: digits alone are milliseconds. */
export const durationOf = (text: string): string | number => (/^\d+$/.test(text) ? Number(text) : text);

function storyInWords({ now, denials }: KeyStory, hint: string): string {
  const counts =
    now === null
      ? "Nothing counts for it now."
      : "count" in now
        ? reportInWords(now, hint)
        : table({ head: ["policy", "used", "now", "more in"], rows: now.map(decisionRow) });
  const past = denials.length === 0 ? "No denials are kept." : table(denialTable(denials));
  return `${counts}\n\n${past}`;
}

function decisionRow({ policy, count: used, decision, error }: PolicyDecision): string[] {
  if (decision === undefined) return [policy, "–", error?.message ?? "–", "–"];
  const { allowed, limit, retryAfter, moreAfter } = decision;
  return [
    policy,
    usedOf(used ?? decision.count, limit),
    allowed ? "allowed" : `${decision.reason ?? "denied"} for ${span(retryAfter)}`,
    moreAfter === 0 ? "–" : span(moreAfter),
  ];
}

/** Returns how much of a limit is used. A ban has no limit: what is counted are denials. */
const usedOf = (used: number, limit: number): string =>
  limitOrNone(limit) === null ? counted(used, "denial") : `${count(used)} of ${count(limit)}`;

function denialTable(denials: readonly Denial[]): Table {
  const hasRules = denials.some(({ rule }) => rule);
  return {
    head: ["last denials (UTC)", "times", "policy", ...(hasRules ? ["rule"] : []), "count", "cost", "wait"],
    rows: denials.map(({ at, times, policy, rule, count: used, limit, cost, retryAfter, reason }) => [
      moment(at),
      count(times),
      reason === undefined ? policy : `${policy} (${reason})`,
      ...(hasRules ? [rule ?? ""] : []),
      usedOf(used, limit),
      typeof cost === "number" ? count(cost) : JSON.stringify(cost),
      span(retryAfter),
    ]),
  };
}

function reportInWords(report: KeyReport, hint: string): string {
  const { allowed, retryAfter, expiresAt, policies = [] } = report;
  const wait = retryAfter === null ? "never" : `retry after ${retryAfter} ms`;
  const [only] = policies;
  // Under bans alone nothing is limited: denials begin a ban.
  const isBan = policies.length === 1 && only?.bannedUntil !== undefined;
  const lines: [string, string | number][] = [
    ...countLines(report, isBan),
    ["allowed", allowed ? "yes" : `no, ${report.reason === undefined ? "" : `${report.reason}, `}${wait}`],
    ["expires", expiresAt === 0 ? `never: it has no state.${hint}` : new Date(expiresAt).toISOString()],
  ];
  if (report.moreAfter) lines.push(["more", `in ${span(report.moreAfter)}`]);
  if (report.bannedUntil) lines.push(["banned", `until ${new Date(report.bannedUntil).toISOString()}`]);
  if (report.exception) lines.push(["exception", exceptionInWords(report.exception)]);
  if (report.reservations) lines.push(["reserved", report.reservations]);
  if (report.leases) lines.push(["leases", report.leases]);
  if (policies.length > 1) for (const each of policies) lines.push([each.policy, policyInWords(each)]);
  const cells = lines.map(([name, value]) => [printable(name), printable(String(value))] as const);
  const width = Math.max(11, ...cells.map(([name]) => name.length + 2));
  return cells.map(([name, value]) => `${name.padEnd(width)}${value}`).join("\n");
}

function countLines({ count, limit, remaining }: KeyReport, isBan: boolean): [string, string | number][] {
  if (isBan) return [["denials", `${count} of ${limit}`]];
  return [
    ["count", count],
    ["limit", limit ?? "none"],
    ["remaining", remaining ?? "unlimited"],
  ];
}

function policyInWords({ count, limit, expiresAt, bannedUntil }: PolicyReport): string {
  if (bannedUntil) return `banned until ${new Date(bannedUntil).toISOString()}`;
  const rest = expiresAt === 0 ? "unused" : `until ${new Date(expiresAt).toISOString()}`;
  return `${count} of ${limit}${bannedUntil === undefined ? "" : " denials"}, ${rest}`;
}
