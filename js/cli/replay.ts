import { existsSync, openSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { PolicyCandidate } from "../access-log/candidate.ts";
import { combinedFields } from "../access-log/combined.ts";
import { type Condition, conditionOf, operatorNames } from "../access-log/conditions.ts";
import { defaultSortWindow } from "../access-log/entries.ts";
import { type FormatName, formatNames } from "../access-log/format.ts";
import type { LogOptions } from "../access-log/log.ts";
import { Traffic } from "../access-log/price.ts";
import { Replay } from "../access-log/replay.ts";
import { Measure, type Suggesting } from "../access-log/suggest.ts";
import { RateMeasure } from "../access-log/suggest-rate.ts";
import { timeUnits, zoneOffset } from "../access-log/times.ts";
import type { LeftOut } from "../access-log/unread.ts";
import { inWords } from "../access-log/words.ts";
import type { Policies, Policy } from "../index.ts";
import { algorithms, schema } from "../wasm/generated.ts";
import type { Command } from "./command.ts";
import { type Config, readConfig } from "./config.ts";
import { CommandError, exit, UsageError } from "./errors.ts";
import { logFile, type Meter, sizeOf } from "./files.ts";
import type { Given } from "./options.ts";
import { print, printJson } from "./output.ts";
import { type NamedPolicies, readPolicies, wrongPolicy } from "./policies.ts";
import { Progress } from "./progress.ts";
import { htmlReport } from "./report.ts";
import { RulesCandidate } from "./rules.ts";
import { terminalReport } from "./terminal.ts";

/** The most steps of the timelines in the report and in JSON. */
const mostSteps = 240;
/** The most columns of the timeline on a terminal. */
const mostColumns = 72;

/** The values of `--format`. */
const acceptedFormats = formatNames.flatMap((name) => (name === "combined" ? [name, "common"] : [name]));

/** The scales that `--suggest` tries without `--policy`. */
const usualScales = ["1s", "1m", "1h"] as const;

/** `tollgate replay`: shows what a policy would have denied, by a log's own times. */
export const replay: Command = {
  name: "replay",
  summary: "Shows what policies would have denied in a log",
  usage: "[file…] --policy <json> [--key ip]",
  options: {
    policy: {
      value: "<policy>",
      short: "p",
      multiple: true,
      help: "100/1m (a sliding window), a policy in JSON, or a list of policies that make one decision; or a JSON file\nof them, or the name of a policy in --config; repeat it to compare several",
    },
    config: { value: "<file>", short: "c", help: "a wrangler.toml whose rules are replayed" },
    env: { value: "<name>", help: "an environment in that file" },
    against: {
      value: "<policy>",
      help: "another policy: shows whom it denies and --policy does not, and the other way round",
    },
    key: {
      value: "<field>",
      short: "k",
      multiple: true,
      help: "the key of a line: ip (an IPv6 address by its /64), path, user, all, or any field;\nseveral are combined into one key; ip by default",
    },
    where: {
      value: "<condition>",
      short: "w",
      multiple: true,
      help: `count only lines such as "status == 401" or "path ^= /api"; several must all be met;\nthe operators are ${operatorNames}`,
    },
    only: { value: "key=<key>", help: "the story of one key, as the report shows keys" },
    cost: { value: "<field>", help: "the field that holds the cost of a line; 1 by default" },
    time: { value: "<field>", help: "the field that holds the time, in JSON lines and CSV" },
    format: {
      value: "<name>",
      among: acceptedFormats,
      help: `${acceptedFormats.join(", ")}; by default detected from the first lines`,
    },
    zone: {
      value: "<offset>",
      help: "the UTC offset of times that have none, such as +02:00; UTC by default",
    },
    unit: {
      value: "<unit>",
      among: Object.keys(timeUnits),
      help: "the unit of numeric times: s, ms, us, ns; by default guessed from the number of digits",
    },
    "sort-window": {
      value: "<lines>",
      help: `how many lines a line may be out of order; ${defaultSortWindow} by default`,
    },
    suggest: {
      value: "<percent>",
      help: "find the smallest limit under which that percentage of the keys is never denied",
    },
    price: { help: "estimate what each mode of a Worker on Cloudflare would cost" },
    worst: { value: "<count>", help: "how many of the most denied keys to show; 10 by default" },
    json: { help: "print the summary as JSON" },
    html: { value: "<file>", help: "write a report with plots" },
  },
  notes: `
Without a file, or with "-", it reads standard input. Files may be gzipped; several are merged by time.
The combined and common formats have the fields ${combinedFields.slice(0, 10).join(", ")},
${combinedFields.slice(10).join(", ")}. In JSON lines, dots name nested fields: --key request.user.

Examples:
  tollgate replay access.log --policy 100/1m --where 'path ^= /api'
  tollgate replay access.log --policy 100/1m --against '{"algorithm":"token_bucket","capacity":50,"refillRate":2}'
  tollgate replay access.log --policy 100/1m --only key=192.0.2.7
  tollgate replay access.log* --config wrangler.toml --html report.html
  tollgate replay events.jsonl --key account --cost tokens --time at --suggest 99.9`,
  run: async (given) => {
    const html = given.one("html");
    const percent = percentOf(given);
    const worst = given.integer("worst", 10, 0, 10_000);
    const config = configOf(given);
    const rules = rulesOf(given, config);
    const policies = policiesOf(given, config, percent);
    const against = againstOf(given, config, policies);
    const only = onlyOf(given);
    const isKeyed = policies.length > 0 || only !== undefined;
    const replaying = new Replay(logOptions(given, isKeyed, only), rules?.planner);
    if (rules !== undefined) replaying.candidates.push(rules);
    addPolicies(replaying, [...policies, ...against], percent, only !== undefined);
    if (against.length > 0) compare(replaying);
    if (given.has("price")) estimatePrices(replaying, config);
    // Opened first: a report that cannot be written is an error before a long log is read.
    const report = html === undefined ? undefined : openedReport(html);
    await readAll(replaying, logsOf(given));
    const summary = (steps: number) => replaying.summary({ worst, steps }, percent);
    if (replaying.lines === 0) throw new CommandError("there is no line to replay");
    if (replaying.missingField !== undefined)
      throw new CommandError(replaying.missingField[1] + optionFor(given, replaying.missingField[0]));
    const { lines, unreadable, filtered } = summary(1);
    if (unreadable.count === lines) throw new CommandError(noneRead(unreadable));
    if (filtered > 0 && filtered + unreadable.count === lines) throw noneWanted(given, only);
    if (report !== undefined) writeFileSync(report, htmlReport(summary(mostSteps)));
    // An infinite wait is null in JSON.
    if (given.has("json")) printJson(summary(mostSteps), 2);
    else print(terminalReport(summary(mostColumns)));
    return exit.ok;
  },
};

/** Has each candidate estimate what it would cost. */
function estimatePrices(replaying: Replay, config: Config | undefined): void {
  for (const candidate of replaying.candidates)
    if (candidate instanceof PolicyCandidate) candidate.traffic = new Traffic(candidate.policies);
    else if (candidate instanceof RulesCandidate)
      candidate.traffic = new Traffic(config?.gateway?.sets() ?? []);
}

/** Returns the option that would name another field, if the field is a default. */
function optionFor(given: Given, field: string): string {
  if (field === "time" && !given.has("time")) return "; use --time with the name of the field";
  if (field === "ip" && !given.has("key")) return "; use --key with the name of a field";
  return "";
}

function noneRead({ examples: [first] }: LeftOut): string {
  return `no line can be read${first === undefined ? "" : `; ${first.file}:${first.line}: ${first.reason}`}`;
}

function openedReport(path: string): number {
  if (!existsSync(dirname(path)))
    throw new CommandError(`--html: the folder ${dirname(path)} does not exist`);
  return openSync(path, "w");
}

/** Returns the error for a log of which no line is counted. */
function noneWanted(given: Given, only: string | undefined): CommandError {
  const conditions = given.all("where").map((text) => `--where ${JSON.stringify(text)}`);
  const wanted = [...conditions, ...(only === undefined ? [] : [`--only key=${only}`])];
  return new CommandError(`no line is left by ${wanted.join(" ")}`);
}

/** Returns the only key whose lines are counted. */
function onlyOf(given: Given): string | undefined {
  const text = given.one("only");
  if (text === undefined) return undefined;
  const [, key] = /^key=(.+)$/s.exec(text) ?? [];
  if (key === undefined)
    throw new UsageError(`--only: ${JSON.stringify(text)} is not a key; write --only key=192.0.2.7`);
  return key;
}

function conditionsOf(given: Given): readonly Condition[] {
  return given.all("where").map((text) => {
    const condition = conditionOf(text);
    if (typeof condition === "string")
      throw new UsageError(`--where: ${JSON.stringify(text)} is not a condition; ${condition}`);
    return condition;
  });
}

/** Returns the policy that is compared with the only other one; empty without the option. */
function againstOf(
  given: Given,
  config: Config | undefined,
  policies: readonly NamedPolicies[],
): readonly NamedPolicies[] {
  const text = given.one("against");
  if (text === undefined) return [];
  const against = readPolicies(text, config, "--against");
  if (given.all("policy").length !== 1 || policies.length !== 1 || against.length !== 1)
    throw new UsageError("--against needs one policy, and one --policy to compare it with");
  return against;
}

/** Has the last two candidates compared, which are those of `--policy` and `--against`. */
function compare(replaying: Replay): void {
  const [first, second] = replaying.candidates.slice(-2);
  if (first instanceof PolicyCandidate && second instanceof PolicyCandidate && first !== second)
    replaying.compared = [first, second];
  else
    throw new UsageError("--against compares whole policies; with --suggest, write both with their limits");
}

/** Returns the options of the logs. Rules have keys of their own: without a policy, lines need no other. */
function logOptions(given: Given, isKeyed: boolean, only: string | undefined): LogOptions {
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
    key: !isKeyed ? [] : key.length === 0 ? undefined : key,
    cost: given.one("cost"),
    where: conditionsOf(given),
    only,
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
  return usualScales.map((scale) => ({ from: "--suggest", policies: withoutLimit(scale) }));
}

/** Returns a policy whose limit is to be suggested. */
const withoutLimit = (scale: string): Policies =>
  ({ algorithm: "sliding_window", scale }) as unknown as Policies;

/** Adds the policies to a replay. For one without a limit or a rate, only that is suggested. */
function addPolicies(
  replaying: Replay,
  all: readonly NamedPolicies[],
  percent: number | undefined,
  hasStory: boolean,
): void {
  const valid: NamedPolicies[] = [];
  for (const { name, from, policies } of all) {
    const list: readonly Policy[] = Array.isArray(policies) ? policies : [policies as Policy];
    const measures = percent === undefined ? [] : list.map((policy) => measureOf(policy, from));
    replaying.measures.push(...measures);
    const isWhole = measures.every(({ field }, at) => field in (list[at] as object));
    if (measures.length === 0 || isWhole)
      valid.push({
        ...(name && { name }),
        from,
        policies: candidateOf(replaying, "", policies, from).policies,
      });
  }
  for (const each of valid)
    replaying.candidates.push(
      candidateOf(replaying, labelOf(each, valid), each.policies, each.from, hasStory),
    );
}

/** Returns the field of a bucket's rate, if the policy has a capacity and no rate, in any spelling. */
function missingRate(policy: Policy): string | undefined {
  const fields: Readonly<Record<string, { role: string }>> = algorithms[policy.algorithm]?.fields ?? {};
  const names = Object.keys(policy).map((name) => (schema.snakeCase as Record<string, string>)[name] ?? name);
  const ofRole = (role: string) => Object.keys(fields).find((name) => fields[name]?.role === role) ?? "";
  const rate = ofRole("rate");
  return rate !== "" && names.includes(ofRole("limit")) && !names.includes(rate) ? rate : undefined;
}

function measureOf(policy: Policy, from: string): Suggesting {
  try {
    const rate = missingRate(policy);
    return rate === undefined ? new Measure(policy) : new RateMeasure(policy, rate);
  } catch (error) {
    throw wrongPolicy(from, error);
  }
}

function candidateOf(
  replaying: Replay,
  label: string,
  policies: Policies,
  from: string,
  hasStory = false,
): PolicyCandidate {
  try {
    return new PolicyCandidate(label, policies, replaying.keys, hasStory);
  } catch (error) {
    throw wrongPolicy(from, error);
  }
}

/** Returns the name and the words of policies. How denied hits count is shown if others differ in that alone. */
function labelOf({ name, policies }: NamedPolicies, all: readonly NamedPolicies[]): string {
  const own = unnamed(policies);
  const isOther = (other: Policies) =>
    inWords(other, false) === inWords(own, false) && inWords(other, true) !== inWords(own, true);
  const words = inWords(policies, all.some((each) => isOther(unnamed(each.policies))) || undefined);
  return name === undefined || words.startsWith(`${name}: `) ? words : `${name}: ${words}`;
}

function unnamed(policies: Policies): Policies {
  const list: readonly Policy[] = Array.isArray(policies) ? policies : [policies as Policy];
  return list.map((policy) => ({ ...policy, name: undefined }));
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
