import { counted } from "../../js/access-log/words.ts";
import { element, say } from "../dom.js";
import { readLog } from "../times.js";
import { choiceField, numberField } from "./fields.js";

const kinds = [
  ["edge", "Edge bursts"],
  ["steady", "Steady"],
  ["poisson", "Poisson"],
  ["log", "A log"],
  ["none", "None"],
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
    const notes = [`${counted(times.length, "hit")} read`];
    if (unread > 0) notes.push(`${counted(unread, "line")} without a time`);
    if (left > 0) notes.push(`${left} more not played; drop the whole log below to replay it`);
    say(element("log-note"), `${notes.join(", ")}.`);
    change({ log: times });
  });

  return (state) => {
    kind.show(state.traffic);
    for (const [name, { field, show }] of Object.entries(fields)) {
      field.hidden = !takenBy[state.traffic].includes(name);
      show(state[name]);
    }
    element("edge-note").hidden = state.traffic !== "edge";
    element("log").hidden = state.traffic !== "log";
    if (state.log.length > 0 && !paste.value)
      say(element("log-note"), `${counted(state.log.length, "hit")} from the link.`);
  };
}
