import { element, make, say } from "../dom.js";
import { act, why } from "./api.js";
import { nothing, reason, table } from "./tables.js";
import { ago, count, duration, nameOf } from "./words.js";

/** The policies that are bans, from the last view. */
let bans = [];
export const setBans = (names) => {
  bans = names;
};

/** The number of the last question: an older one may be answered later. */
let asked = 0;

/** Shows what counts now for a key, and why it was denied. */
export async function tell(fields) {
  const story = element("story");
  asked += 1;
  const own = asked;
  try {
    const found = await why(fields);
    if (own !== asked) return;
    say(element("unfound"), "");
    story.replaceChildren(...parts(found));
    story.hidden = false;
    story.focus();
  } catch (error) {
    if (own !== asked) return;
    story.hidden = true;
    say(element("unfound"), error.message);
  }
}

/** Forgets the key that is shown, and does not show one that was asked for. */
export function forget() {
  asked += 1;
  element("story").hidden = true;
  element("story").replaceChildren();
  element("sure").close();
}

function parts(found) {
  const { key, policies, denials, now } = found;
  return [
    make("h3", {}, "Key ", make("code", {}, key)),
    table(
      "What counts now",
      ["Policy", "#Left", "#Limit", "A hit now", "#As if unused in"],
      policies.map(policyRow),
    ),
    ...exceptionOf(policies),
    make("div", { class: "line", id: "acts" }, ...buttons(found)),
    make("p", { id: "done", role: "status" }),
    make("h3", {}, "Denied within a day"),
    denials.length === 0
      ? nothing("Not that this page knows.")
      : table(
          "Denied within a day",
          ["When", "By", "Why"],
          denials.map((denial) => [stretch(denial, now), nameOf(denial), reason(denial)]),
        ),
  ];
}

function policyRow({ policy, count: used, remaining, decision, error }) {
  if (error) return [policy, "", "", error.message, ""];
  const { allowed, limit, retryAfter, resetAfter, reason } = decision;
  const wait = retryAfter === null ? "never" : `in ${duration(retryAfter)}`;
  const answer = allowed
    ? make("b", { class: "allowed" }, "allowed")
    : make(
        "span",
        {},
        make("b", { class: "denied" }, reason === "banned" ? "banned" : "denied"),
        `, again ${wait}`,
      );
  const unused = remaining === limit ? "" : duration(resetAfter);
  // A ban limits nothing until it holds: it has a count of denials.
  if (bans.includes(policy))
    return [policy, reason === "banned" ? "" : `${count(used)} denials`, "", answer, ""];
  return [policy, count(remaining), count(limit), answer, unused];
}

/** Returns what is said of the exception that a key has. */
function exceptionOf(policies) {
  const { exception, until } = policies.find(({ exception }) => exception) ?? {};
  if (!exception) return [];
  const what = exception.allow
    ? "everything is allowed"
    : exception.deny
      ? "everything is denied"
      : JSON.stringify(exception);
  return [
    make("p", {}, make("b", {}, "Exception"), `: ${what} until ${new Date(until).toLocaleString("en")}`),
  ];
}

const stretch = ({ first, at, times }, now) =>
  times === 1 || at - first < 1_000 ? ago(at, now) : `${ago(at, now)}, for ${duration(at - first)}`;

/** Returns the buttons that act on a key: the one that is shown with them, whatever is asked for meanwhile. */
function buttons(found) {
  const { key } = found;
  const policy = found.policies.filter(({ error }) => !error).map(({ policy }) => policy);
  const button = (text, question, operation, fields) => {
    const made = make("button", { type: "button" }, text);
    made.addEventListener("click", () => perform(found, question(), operation, fields()));
    return made;
  };
  const length = make("input", { id: "length", value: "1h", size: 6 });
  const timed = make("label", { class: "line" }, "For", length);
  const except = (text, verb, exception) =>
    button(
      text,
      () => `${verb} everything for ${key}, for ${length.value.trim()}?`,
      "except",
      () => ({ policy, exception, for: lengthIn(length) }),
    );
  const lift = () => ({ policy, exception: null });
  const all = [
    button(
      "Reset",
      () => `Remove what counts for ${key} under ${policy.join(", ")}?`,
      "reset",
      () => ({ policy }),
    ),
    timed,
    except("Allow all", "Allow", { allow: true }),
    except("Deny all", "Deny", { deny: true }),
    button("Lift exception", () => `Lift the exception of ${key}?`, "except", lift),
  ];
  if (bans.length === 0) return all;
  const name = make(
    "select",
    { id: "ban", "aria-label": "Which ban" },
    ...bans.map((ban) => make("option", {}, ban)),
  );
  const ban = () => ({ policy: name.value, for: lengthIn(length) });
  return [
    ...all,
    button("Ban", () => `Ban ${key} for ${length.value.trim()}?`, "ban", ban),
    button(
      "Unban",
      () => `Lift the ban of ${key}?`,
      "unban",
      () => ({ policy: name.value }),
    ),
    ...(bans.length > 1 ? [name] : []),
  ];
}

/** Returns the length that was entered: a number is in milliseconds. */
function lengthIn(input) {
  const length = input.value.trim();
  return /^\d+$/.test(length) ? Number(length) : length;
}

/** Performs an operation on a key if the operator is sure, and shows the key again. */
async function perform({ object }, question, operation, fields) {
  if (!(await isSure(question))) return;
  try {
    const answer = await act(operation, { parts: object, ...fields });
    await tell({ parts: object });
    say(element("done"), words(operation, fields, answer));
  } catch (error) {
    say(element("done"), error.message);
  }
}

function words(operation, { exception }, { reset, unbanned, until }) {
  const end = until && new Date(until).toLocaleString("en");
  if (operation === "ban") return `Banned until ${end}.`;
  if (operation === "except")
    return exception ? `There is an exception until ${end}.` : "There is no exception now.";
  if (operation === "unban") return unbanned ? "The ban is lifted." : "There was no ban.";
  return reset ? "Nothing counts any more." : "There was nothing to remove.";
}

function isSure(question) {
  const dialog = element("sure");
  say(element("question"), question);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }),
  );
}
