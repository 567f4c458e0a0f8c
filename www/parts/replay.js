import { summaryHtml } from "../../js/access-log/html.ts";
import { counted } from "../../js/access-log/words.ts";
import { deniedChoices, ofHits } from "../algorithms.js";
import { element, make, say } from "../dom.js";
import { replayed } from "../replay/run.js";
import { parts } from "../state.js";
import { announce } from "./announce.js";

/** The name of a bucket's rate. A bucket has the numbers of a window: its limit at once, and again in its time. */
const rateNames = { token_bucket: "refillRate", leaky_bucket: "leakRate" };

const policyOf = (algorithm, limit, scale, denied) =>
  algorithm in rateNames
    ? { algorithm, capacity: limit, [rateNames[algorithm]]: limit, per: scale }
    : { algorithm, limit, scale, denied };

/** Replays a log of any length, by its own times and keys, as `npx tollgate replay` does. */
export function wholeLog() {
  const form = element("replay-form");
  const choice = form.elements.algorithm;
  choice.append(
    ...ofHits.map(({ id, title }) => make("option", { value: id, selected: id === "sliding_window" }, title)),
    make("option", { value: "" }, "All, side by side"),
  );
  form.elements.denied.append(
    ...deniedChoices.map(([value, title]) =>
      make("option", { value, selected: value === parts.denied.first }, title),
    ),
  );
  let files = [];
  let stop = new AbortController();

  const settings = () => {
    const { limit, scale, key, denied } = form.elements;
    const chosen = choice.value === "" ? ofHits.map(({ id }) => id) : [choice.value];
    return {
      policies: chosen.map((id) => policyOf(id, Number(limit.value), scale.value.trim(), denied.value)),
      key: key.value.split(",").map((part) => part.trim() || "ip"),
    };
  };

  async function run() {
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    // A bucket has no such choice: its denied hits are always free.
    form.elements.denied.disabled = choice.value in rateNames;
    showCommand(settings(), files);
    if (files.length === 0) return;
    const show = (lines) => say(element("replay-note"), `${counted(lines, "line")} read…`);
    show(0);
    try {
      const summary = await replayed(files, { ...settings(), signal, show });
      element("replay-result").innerHTML = summaryHtml(summary, 3);
      say(element("replay-note"), `${counted(summary.lines, "line")} of ${names(files)}.`);
      announce(summaryInWords(summary));
    } catch (error) {
      // A newer replay has replaced this one.
      if (signal.aborted) return;
      element("replay-result").replaceChildren();
      say(element("replay-note"), error.message);
      announce(error.message);
    }
  }

  const take = (list) => {
    files = [...list];
    // The result is below, also where the section was folded.
    element("replay-drop").closest("details").open = true;
    run();
  };
  element("replay-files").addEventListener("change", ({ target }) => take(target.files));
  form.addEventListener("change", ({ target }) => target.id !== "replay-files" && run());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  dropped(element("replay-drop"), take);
  showCommand(settings(), files);
}

const names = (files) => files.map(({ name }) => name).join(", ");

const summaryInWords = ({ candidates }) =>
  candidates.map(({ name, denied, hits }) => `${name}: ${denied} of ${hits} denied.`).join(" ");

/** Handles dropped files. One that is dropped beside the target must not replace the page. */
function dropped(target, take) {
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    delete target.dataset.over;
    if (event.dataTransfer.files.length > 0) take(event.dataTransfer.files);
  });
  target.addEventListener("dragover", () => {
    target.dataset.over = "";
  });
  target.addEventListener("dragleave", () => delete target.dataset.over);
}

/** Shows the command for a terminal. */
function showCommand({ policies, key }, files) {
  const words = [
    "npx tollgate replay",
    ...(files.length > 0 ? files.map(({ name }) => quoted(name)) : ["access.log"]),
  ];
  words.push(`--key ${quoted(key.join(","))}`);
  for (const policy of policies) words.push(`--policy '${JSON.stringify(policy)}'`);
  say(element("replay-command"), words.join(" \\\n  "));
}

const quoted = (word) => (/^[\w.,:@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
