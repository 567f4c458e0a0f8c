import { openSync, writeFileSync } from "node:fs";
import type { Policies, Policy } from "../index.ts";
import { PolicyCandidate } from "../replay/candidate.ts";
import { combinedFields } from "../replay/combined.ts";
import { defaultSortWindow } from "../replay/entries.ts";
import { type FormatName, formatNames } from "../replay/format.ts";
import type { LogOptions } from "../replay/log.ts";
import { Replay, type ReplaySummary } from "../replay/replay.ts";
import { Measure } from "../replay/suggest.ts";
import { timeUnits, zoneOffset } from "../replay/times.ts";
import { inWords } from "../replay/words.ts";
import type { Command } from "./command.ts";
import { type Config, readConfig } from "./config.ts";
import { CommandError, exit, UsageError } from "./errors.ts";
import { logFile, type Meter, sizeOf } from "./files.ts";
import type { Given } from "./options.ts";
import { type NamedPolicies, readPolicies } from "./policies.ts";
import { Progress } from "./progress.ts";
import { htmlReport } from "./report.ts";
import { RulesCandidate } from "./rules.ts";
import { terminalReport } from "./terminal.ts";

/** The most steps of the timelines in the report and in JSON. */
const mostSteps = 240;
/** The most columns of the timeline on a terminal. */
const mostColumns = 72;

/** The scales that `--suggest` tries without `--policy`. */
const usualScales = ["1s", "1m", "1h"] as const;

/** `tollgate replay`: shows what a policy would have denied, by a log's own times. */
export const replay: Command = {
  name: "replay",
  summary: "Shows what policies would have denied, by the times of a log",
  usage: "[file…] --policy <json> [--key ip]",
  options: {
    policy: {
      value: "<json>",
      short: "p",
      multiple: true,
      help: "a policy, or a list that is one decision, in JSON; or a file of them, or the\nname of one in --config; several are tried side by side",
    },
    config: { value: "<file>", short: "c", help: "a wrangler.toml whose rules are tried" },
    env: { value: "<name>", help: "an environment of that configuration" },
    key: {
      value: "<field>",
      short: "k",
      multiple: true,
      help: "what hits are counted by: ip (an IPv6 address by its /64), path, user, all,\nor any field; several are one key; ip by default",
    },
    cost: { value: "<field>", help: "the field that holds the cost of a line; 1 by default" },
    time: { value: "<field>", help: "the field that holds the time, in JSON lines and CSV" },
    format: {
      value: "<name>",
      among: [...formatNames, "common"],
      help: `${formatNames.join(", ")}; by default what the first lines look like`,
    },
    zone: { value: "<offset>", help: "the offset of times that name none, such as +02:00; UTC by default" },
    unit: {
      value: "<unit>",
      among: Object.keys(timeUnits),
      help: "the unit of times in digits: s, ms, us, ns; by default by their length",
    },
    "sort-window": {
      value: "<lines>",
      help: `how many lines a line may be out of order by; ${defaultSortWindow} by default`,
    },
    suggest: {
      value: "<percent>",
      help: "the smallest limit under which so many percent of the keys are never denied",
    },
    worst: { value: "<count>", help: "how many of the keys that were denied most are shown; 10 by default" },
    json: { help: "print the summary as JSON" },
    html: { value: "<file>", help: "write a report with plots" },
  },
  notes: `
Without a file, or for "-", it reads standard input. Files may be packed by gzip, and are read as one log in
order of time. Fields of the combined and common formats: ${combinedFields.join(", ")}.
In JSON lines, a field of a field is named with dots: --key request.user.

Examples:
  tollgate replay access.log --policy '{"algorithm":"sliding_window","limit":100,"scale":"1m"}'
  tollgate replay access.log* --config wrangler.toml --html report.html
  tollgate replay events.jsonl --key account --cost tokens --time at --suggest 99.9`,
  run: async (given) => {
    const html = given.one("html");
    const percent = percentOf(given);
    const worst = given.integer("worst", 10, 0, 10_000);
    const config = configOf(given);
    const rules = rulesOf(given, config);
    const policies = policiesOf(given, config, percent);
    const replaying = new Replay(logOptions(given, policies.length > 0), rules?.planner);
    if (rules !== undefined) replaying.candidates.push(rules);
    addPolicies(replaying, policies, percent);
    // Opened first: a report that cannot be written is an error before a long log is read.
    const report = html === undefined ? undefined : openSync(html, "w");
    await readAll(replaying, logsOf(given));
    const summary = (steps: number) => replaying.summary({ worst, steps }, percent);
    if (replaying.lines === 0) throw new CommandError("there is no line to replay");
    if (report !== undefined) writeFileSync(report, htmlReport(summary(mostSteps)));
    process.stdout.write(
      given.has("json") ? inJson(summary(mostSteps)) : terminalReport(summary(mostColumns)),
    );
    return exit.ok;
  },
};

/** Returns the options of the logs. Rules have keys of their own: without a policy, lines need no other. */
function logOptions(given: Given, isKeyed: boolean): LogOptions {
  const zone = given.one("zone");
  if (zone !== undefined && zoneOffset(zone) === undefined)
    throw new UsageError(`--zone: ${JSON.stringify(zone)} is not an offset such as +02:00 or Z`);
  const format = given.one("format");
  const key = given
    .all("key")
    .flatMap((each) => each.split(","))
    .map((each) => each.trim());
  if (key.includes("")) throw new UsageError("--key: a name is empty");
  return {
    format: (format === "common" ? "combined" : format) as FormatName | undefined,
    time: given.one("time"),
    zone,
    unit: given.one("unit") as LogOptions["unit"],
    key: !isKeyed ? [] : key.length === 0 ? ["ip"] : key,
    cost: given.one("cost"),
    sortWindow: given.integer("sort-window", defaultSortWindow, 1, 1_000_000),
  };
}

function percentOf(given: Given): number | undefined {
  const text = given.one("suggest");
  if (text === undefined) return undefined;
  const percent = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(percent > 0 && percent <= 100))
    throw new UsageError(`--suggest: ${JSON.stringify(text)} is not a percentage above 0 and up to 100`);
  return percent;
}

function configOf(given: Given): Config | undefined {
  const path = given.one("config");
  if (path === undefined) {
    if (given.has("env")) throw new UsageError("--env needs --config");
    return undefined;
  }
  const config = readConfig(path, given.one("env"));
  if (config.gateway !== undefined) return config;
  const [{ line, field, problem } = { line: 1, field: "", problem: "" }] = config.errors;
  throw new CommandError(`${path}:${line}: ${field}: ${problem} (tollgate check ${path} shows all errors)`);
}

/** Returns the rules of a configuration; undefined if it has none and a policy is tried. */
function rulesOf(given: Given, config: Config | undefined): RulesCandidate | undefined {
  const { gateway, policies, rules, file } = config ?? {};
  if (gateway === undefined || file === undefined) return undefined;
  if (gateway.limits().length > 0) return new RulesCandidate(file.path, gateway, rules ?? []);
  if (given.has("policy")) return undefined;
  throw new UsageError(
    `${file.path} has no rules; name a policy of it: --policy ${policies?.[0] ?? "<name>"}`,
  );
}

function policiesOf(
  given: Given,
  config: Config | undefined,
  percent: number | undefined,
): readonly NamedPolicies[] {
  const named = given.all("policy").flatMap((text) => readPolicies(text, config));
  if (named.length > 0 || config !== undefined) return named;
  if (percent === undefined) throw new UsageError("--policy, --config or --suggest is required");
  return usualScales.map((scale) => ({ policies: withoutLimit(scale) }));
}

/** Returns a policy whose limit is to be suggested. */
const withoutLimit = (scale: string): Policies =>
  ({ algorithm: "sliding_window", scale }) as unknown as Policies;

/** Adds the policies to a replay. For one without a limit, only a limit is suggested. */
function addPolicies(replaying: Replay, all: readonly NamedPolicies[], percent: number | undefined): void {
  for (const { name, policies } of all) {
    const list: readonly Policy[] = Array.isArray(policies) ? policies : [policies as Policy];
    const measures = percent === undefined ? [] : list.map((policy) => measureOf(policy));
    replaying.measures.push(...measures);
    const isWhole = measures.every(({ field }, at) => field in (list[at] as object));
    if (measures.length === 0 || isWhole) replaying.candidates.push(candidateOf(replaying, name, policies));
  }
}

const wrongPolicy = (error: unknown) => new UsageError(`--policy: ${(error as Error).message}`);

function measureOf(policy: Policy): Measure {
  try {
    return new Measure(policy);
  } catch (error) {
    throw wrongPolicy(error);
  }
}

function candidateOf(replaying: Replay, name: string | undefined, policies: Policies): PolicyCandidate {
  try {
    const candidate = new PolicyCandidate("", policies, replaying.keys);
    return new PolicyCandidate(named(name, candidate.policies), policies, replaying.keys);
  } catch (error) {
    throw wrongPolicy(error);
  }
}

function named(name: string | undefined, policies: Policies): string {
  const words = inWords(policies);
  return name === undefined || words.startsWith(`${name}: `) ? words : `${name}: ${words}`;
}

function logsOf({ operands }: Given): readonly string[] {
  if (operands.length === 0 && process.stdin.isTTY === true)
    throw new UsageError("name a log, or pipe one in");
  return operands.length === 0 ? ["-"] : operands;
}

async function readAll(replaying: Replay, paths: readonly string[]): Promise<void> {
  if (paths.filter((path) => path === "-").length > 1)
    throw new UsageError('"-" is standard input, of which there is one');
  const sizes = paths.map(sizeOf);
  const total = sizes.includes(undefined)
    ? undefined
    : sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  const meter: Meter = { read: 0 };
  const progress = new Progress(total);
  try {
    await replaying.read(
      paths.map((path) => logFile(path, meter)),
      () => progress.show(meter.read, replaying.lines),
    );
  } finally {
    progress.end();
  }
}

/** Returns the summary as JSON. An infinite wait is null there. */
const inJson = (summary: ReplaySummary): string => `${JSON.stringify(summary, undefined, 2)}\n`;
