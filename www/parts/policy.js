import { algorithms, byId, deniedChoices } from "../algorithms.js";
import { element, make, say } from "../dom.js";
import { choiceField, durationField, numberField } from "./fields.js";

/** The algorithm and its numbers. */
export function policyControls(change) {
  const list = element("algorithms");
  const radios = algorithms.map(({ id, title }) => {
    const input = make("input", { type: "radio", name: "algorithm", value: id, id: `algorithm-${id}` });
    input.addEventListener("change", () => change({ algorithm: id }));
    list.append(make("div", {}, input, make("label", { for: input.id }, title, make("code", {}, id))));
    return input;
  });
  // On a small screen, where the list would push the chart away.
  const select = element("algorithm");
  select.append(...algorithms.map(({ id, title }) => make("option", { value: id }, title)));
  select.addEventListener("change", () => change({ algorithm: select.value }));
  const fields = {
    limit: numberField("limit", change),
    scale: durationField("scale", change),
    capacity: numberField("capacity", change),
    rate: numberField("rate", change),
    per: durationField("per", change),
    run: durationField("run", change),
    cost: numberField("cost", change),
    denied: choiceField("denied", "A denied hit", deniedChoices, change),
  };
  element("numbers").append(...Object.values(fields).map(({ field }) => field));

  return (state) => {
    const { says, fields: taken } = byId[state.algorithm];
    for (const input of radios) input.checked = input.value === state.algorithm;
    select.value = state.algorithm;
    say(element("says"), says);
    for (const [name, { field, show }] of Object.entries(fields)) {
      field.hidden = name !== "cost" && !taken.includes(name);
      show(state[name]);
    }
  };
}
