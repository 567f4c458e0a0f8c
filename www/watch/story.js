import { element, make, say } from "../dom.js";
import { act, why } from "./api.js";
import { nothing, reason, table } from "./tables.js";
import { ago, count, duration, nameOf } from "./words.js";

/** The policies that are bans, from the last view. */
let bans = [];
export const setBans = (names) => {
  bans = names;
};

let shown;

/** Shows what counts now for a key, and why it was denied. */
export async function tell(fields) {
  const story = element("story");
  try {
    const found = await why(fields);
    shown = found;
    say(element("unfound"), "");
    story.replaceChildren(...parts(found));
    story.hidden = false;
    story.focus();
  } catch (error) {
    story.hidden = true;
    say(element("unfound"), error.message);
  }
}

function parts({ key, policies, denials, now }) {
  return [
    make("h3", {}, "Key ", make("code", {}, key)),
    table(
      "What counts now",
      ["Policy", "#Left", "#Limit", "A hit now", "#As if unused in"],
      policies.map(policyRow),
    ),
    ...exceptionOf(policies),
    make("div", { class: "line", id: "acts" }, ...buttons()),
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

function buttons() {
  const button = (text, work) => {
    const made = make("button", { type: "button" }, text);
    made.addEventListener("click", work);
    return made;
  };
  const length = make("input", { id: "length", value: "1h", size: 6 });
  const timed = make("label", { class: "line" }, "For", length);
  const excepts = [
    button("Allow all", () => except({ allow: true })),
    button("Deny all", () => except({ deny: true })),
    button("Lift exception", () => except(null)),
  ];
  const all = [button("Reset", reset), timed, ...excepts];
  if (bans.length === 0) return all;
  const name = make(
    "select",
    { id: "ban", "aria-label": "Which ban" },
    ...bans.map((ban) => make("option", {}, ban)),
  );
  return [...all, button("Ban", ban), button("Unban", unban), ...(bans.length > 1 ? [name] : [])];
}

const chosenBan = () => element("ban")?.value ?? bans[0];

/** The policies that are shown. */
const names = () => shown.policies.filter(({ error }) => !error).map(({ policy }) => policy);

const reset = () =>
  perform(`Remove what counts for ${shown.key} under ${names().join(", ")}?`, "reset", { policy: names() });

/** Returns the length that was entered: a number is in milliseconds. */
function chosenLength() {
  const length = element("length").value.trim();
  return /^\d+$/.test(length) ? Number(length) : length;
}

function except(exception) {
  if (exception === null)
    return perform(`Lift the exception of ${shown.key}?`, "except", { policy: names(), exception });
  const length = chosenLength();
  const what = exception.allow ? "Allow" : "Deny";
  const question = `${what} everything for ${shown.key}, for ${length}?`;
  return perform(question, "except", { policy: names(), exception, for: length });
}

const unban = () => perform(`Lift the ban of ${shown.key}?`, "unban", { policy: chosenBan() });

function ban() {
  const length = chosenLength();
  return perform(`Ban ${shown.key} for ${length}?`, "ban", { policy: chosenBan(), for: length });
}

/** Performs an operation on the key if the operator is sure, and shows the key again. */
async function perform(question, operation, fields) {
  if (!(await isSure(question))) return;
  const { object } = shown;
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
