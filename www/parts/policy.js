import { algorithms, byId, deniedChoices } from "../algorithms.js";
import { element, make, say } from "../dom.js";
import { choiceField, durationField, numberField } from "./fields.js";

/** Returns whether a field has no effect: that of another algorithm, or of a ban without one and the reverse. */
function isHidden(name, taken, { banAfter }) {
  if (name === "banFor") return banAfter === 0;
  if (name === "denied" && banAfter > 0) return true;
  return !["cost", "banAfter"].includes(name) && !taken.includes(name);
}

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
    banAfter: numberField("banAfter", change),
    banFor: durationField("banFor", change),
  };
  element("numbers").append(...Object.values(fields).map(({ field }) => field));

  return (state) => {
    const { says, fields: taken } = byId[state.algorithm];
    for (const input of radios) input.checked = input.value === state.algorithm;
    select.value = state.algorithm;
    say(element("says"), says);
    element("ban-legend").hidden = state.banAfter === 0;
    for (const [name, { field, show }] of Object.entries(fields)) {
      field.hidden = isHidden(name, taken, state);
      show(state[name]);
    }
  };
}
