import { element, say } from "../dom.js";
import { readLog } from "../times.js";
import { choiceField, numberField } from "./fields.js";

const kinds = [
  ["edge", "Edge bursts"],
  ["steady", "Steady"],
  ["poisson", "Poisson"],
  ["log", "A log"],
  ["none", "Only mine"],
];
const takenBy = { edge: ["size"], steady: ["pace"], poisson: ["pace", "seed"], log: [], none: [] };

/** Controls for the traffic. */
export function trafficControls(change) {
  const kind = choiceField("traffic", "Traffic", kinds, change);
  const fields = {
    size: numberField("size", change),
    pace: numberField("pace", change),
    seed: numberField("seed", change),
  };
  element("traffic").prepend(kind.field, ...Object.values(fields).map(({ field }) => field));

  const paste = element("log-text");
  paste.addEventListener("input", () => {
    const { times, unread, left } = readLog(paste.value);
    const notes = [`${times.length} hits read`];
    if (unread > 0) notes.push(`${unread} lines without a time`);
    if (left > 0) notes.push(`${left} more are not played hit by hit; drop the log below to replay it whole`);
    say(element("log-note"), `${notes.join(", ")}.`);
    change({ log: times });
  });

  return (state) => {
    kind.show(state.traffic);
    for (const [name, { field, show }] of Object.entries(fields)) {
      field.hidden = !takenBy[state.traffic].includes(name);
      show(state[name]);
    }
    element("log").hidden = state.traffic !== "log";
    if (state.log.length > 0 && !paste.value)
      say(element("log-note"), `${state.log.length} hits from the link.`);
  };
}
