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

const stretch = ({ first, at, times }, now) =>
  times === 1 || at - first < 1_000 ? ago(at, now) : `${ago(at, now)}, for ${duration(at - first)}`;

function buttons() {
  const button = (text, work) => {
    const made = make("button", { type: "button" }, text);
    made.addEventListener("click", work);
    return made;
  };
  const all = [button("Reset", reset)];
  if (bans.length === 0) return all;
  const length = make("input", { id: "length", value: "1h", size: 6, "aria-label": "How long" });
  const name = make(
    "select",
    { id: "ban", "aria-label": "Which ban" },
    ...bans.map((ban) => make("option", {}, ban)),
  );
  return [...all, button("Unban", unban), button("Ban for", ban), length, ...(bans.length > 1 ? [name] : [])];
}

const chosenBan = () => element("ban")?.value ?? bans[0];

const reset = () => {
  const names = shown.policies.filter(({ error }) => !error).map(({ policy }) => policy);
  return perform(`Remove what counts for ${shown.key} under ${names.join(", ")}?`, "reset", {
    policy: names,
  });
};

const unban = () => perform(`Lift the ban of ${shown.key}?`, "unban", { policy: chosenBan() });

function ban() {
  const length = element("length").value.trim();
  const milliseconds = /^\d+$/.test(length) ? Number(length) : length;
  return perform(`Ban ${shown.key} for ${length}?`, "ban", { policy: chosenBan(), for: milliseconds });
}

/** Performs an operation on the key if the operator is sure, and shows the key again. */
async function perform(question, operation, fields) {
  if (!(await isSure(question))) return;
  const { object } = shown;
  try {
    const answer = await act(operation, { parts: object, ...fields });
    await tell({ parts: object });
    say(element("done"), words(operation, answer));
  } catch (error) {
    say(element("done"), error.message);
  }
}

function words(operation, { reset, unbanned, until }) {
  if (operation === "ban") return `Banned until ${new Date(until).toLocaleString("en")}.`;
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
