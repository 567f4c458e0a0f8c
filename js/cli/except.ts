import { moment } from "../access-log/words.ts";
import type { Exception, ExceptionEnd } from "../types.ts";
import type { Command } from "./command.ts";
import { UsageError } from "./errors.ts";
import { exceptionInWords } from "./exception-words.ts";
import { durationOf, keyCommand } from "./key-commands.ts";
import type { Given } from "./options.ts";

const actions = ["allow", "deny", "lift"] as const;

/** `tollgate except`: gives a key other numbers until a time, or allows or denies it. */
export const except: Command = keyCommand(
  {
    name: "except",
    summary: "Gives a key other numbers until a time, or allows or denies everything; shows what it has",
    usage:
      "(<key> | --ip <address> | --part <part>…) [<policy>.<field>=<number>…] [--for <time>] (--redis <url> | --url <url>)",
    options: {
      for: { value: "<time>", help: "how long from now: 3d, 12h, or milliseconds; at most 400 days" },
      until: { value: "<time>", help: "when it ends instead: 2026-12-01, 2026-12-01T09:00Z" },
      allow: { help: "allow every hit, and count none" },
      deny: { help: "deny every hit" },
      lift: { help: "lift the exception that the key has" },
      note: { value: "<text>", help: "in Redis: who sets it and why, for tollgate exceptions" },
    },
    notes: `
Fields are those of the policy: limit, capacity, refillRate, leakRate, and of a ban after, for, factor and most; the
policy's name may be left out if there is only one. An exception replaces the one before as a whole.

  tollgate except customer:42 api.limit=1000 daily.limit=50000 --for 3d
  tollgate except customer:42 --allow --for 1h
  tollgate except customer:42
  tollgate except customer:42 --lift`,
    hasAssignments: true,
  },
  (given) => {
    const exception = exceptionOf(given);
    if (exception === undefined)
      return async (target) => {
        const found = await target.exception();
        if (found === null) return [{ exception: null }, `${target.words} has no exception.`];
        const note = await target.note(found.until);
        const noted = note === undefined ? "" : ` ${note}`;
        const json = { exception: found, ...(note === undefined ? {} : { note }) };
        return [json, `${target.words} has ${exceptionInWords(found)}.${noted}`];
      };
    if (exception === null)
      return async (target) => {
        const lifted = (await target.except(null)) > 0;
        return [{ lifted }, `${target.words} ${lifted ? "has no exception any more" : "had no exception"}.`];
      };
    const end = endOf(given);
    return async (target) => {
      const until = await target.except(exception, end, given.one("note"));
      return [{ until }, `${target.words} has the exception until ${moment(until)} UTC.`];
    };
  },
);

/** Returns the exception of the command line: null to lift the one there is, undefined to show it. */
function exceptionOf(given: Given): Exception | null | undefined {
  const chosen = actions.filter((action) => given.has(action));
  const fields = assignmentsIn(given);
  if (chosen.length + Number(fields.length > 0) > 1)
    throw new UsageError("use one of --allow, --deny, --lift and other numbers");
  const [action] = chosen;
  if (action !== undefined && action !== "lift") return { [action]: true } as Exception;
  if (fields.length > 0) return assigned(fields);
  for (const option of ["for", "until", "note"])
    if (given.has(option))
      throw new UsageError(`--${option} needs --allow, --deny or a number such as limit=1000`);
  return action === "lift" ? null : undefined;
}

/** Returns the operands that are no key. */
const assignmentsIn = (given: Given): readonly string[] =>
  given.has("part") || given.has("ip") ? given.operands : given.operands.slice(1);

function assigned(texts: readonly string[]): Exception {
  const exception: Record<string, Record<string, unknown> | unknown> = {};
  for (const text of texts) {
    const [, policy, field = "", value = ""] = /^(?:(.+)\.)?(\w+)=([\w]+)$/s.exec(text) ?? [];
    if (field === "")
      throw new UsageError(`${JSON.stringify(text)} is not a number such as limit=1000 or api.limit=1000`);
    if (policy !== undefined) exception[policy] ??= {};
    const fields = policy === undefined ? exception : (exception[policy] as Record<string, unknown>);
    if (field in fields) throw new UsageError(`${text}: there is another ${field}`);
    fields[field] = durationOf(value);
  }
  return exception as Exception;
}

function endOf(given: Given): ExceptionEnd {
  const [length, until] = [given.one("for"), given.one("until")];
  if ((length === undefined) === (until === undefined)) throw new UsageError("--for or --until is required");
  if (length !== undefined) return { for: durationOf(length) as never };
  const time = /^\d+$/.test(until as string) ? Number(until) : Date.parse(until as string);
  if (!Number.isSafeInteger(time))
    throw new UsageError(`--until: ${JSON.stringify(until)} is not a time such as 2026-12-01T09:00Z`);
  return { until: time };
}
