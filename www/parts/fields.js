import { duration } from "../algorithms.js";
import { make } from "../dom.js";
import { durations } from "../durations.js";
import { parts } from "../state.js";

/** The label of a field, and the meaning of its number. */
const words = {
  limit: ["Limit", "hits allowed"],
  scale: ["Scale", "length of the window"],
  capacity: ["Capacity", "hits at once"],
  rate: ["Rate", "hits per period"],
  per: ["Per", "length of the period"],
  run: ["Time", "a hit holds its slot"],
  cost: ["Cost", "of each hit"],
  banAfter: ["Ban after", "denials within a minute; 0 for never"],
  banFor: ["Ban for", "so long"],
  amount: ["Amount", "to reserve"],
  ttl: ["Expires", "after"],
  size: ["Burst", "hits on each side of an edge"],
  pace: ["Pace", "hits per second"],
  seed: ["Seed", "of the random times"],
};

const labelled = (name) => {
  const [label, meaning] = words[name];
  return make("label", { for: name }, label, " ", make("small", {}, meaning));
};

/** Returns a field for an integer: a slider, and a box to type it into. */
export function numberField(name, change) {
  const { least, most } = parts[name];
  const bounds = { min: least, max: most, step: 1 };
  const slider = make("input", { type: "range", id: name, ...bounds });
  const box = make("input", {
    type: "number",
    ...bounds,
    "aria-label": `${words[name][0]}, as a number`,
    inputmode: "numeric",
  });
  for (const input of [slider, box]) {
    input.addEventListener("input", () => {
      const value = parts[name].read(input.value);
      if (value !== undefined) change({ [name]: value });
    });
  }
  const field = make("div", { class: "field", "data-field": name }, labelled(name), box, slider);
  const show = (value) => {
    slider.value = value;
    slider.style.setProperty("--filled", `${((value - least) / (most - least)) * 100}%`);
    // A box with the focus is left as it is, since the visitor is typing.
    if (document.activeElement !== box) box.value = value;
  };
  return { field, show };
}

/** Returns a field for a duration: a slider over the usual ones. */
export function durationField(name, change) {
  const slider = make("input", { type: "range", id: name, min: 0, max: durations.length - 1, step: 1 });
  slider.addEventListener("input", () => change({ [name]: durations[slider.value] }));
  const output = make("output", { for: name });
  const field = make("div", { class: "field", "data-field": name }, labelled(name), output, slider);
  const show = (value) => {
    const position = durations.indexOf(value);
    slider.value = position;
    slider.style.setProperty("--filled", `${(position / (durations.length - 1)) * 100}%`);
    slider.setAttribute("aria-valuetext", duration(value));
    output.textContent = duration(value);
  };
  return { field, show };
}

/** Returns a field for one of a few values: radio buttons that look like one control. */
export function choiceField(name, legend, choices, change) {
  const inputs = choices.map(([value, label]) => {
    const input = make("input", { type: "radio", name, value, id: `${name}-${value}` });
    input.addEventListener("change", () => change({ [name]: value }));
    return [input, make("label", { for: input.id }, label)];
  });
  const field = make(
    "fieldset",
    { class: "choice", "data-field": name },
    make("legend", {}, legend),
    make("div", { class: "segments" }, ...inputs.flat()),
  );
  const show = (value) => {
    for (const [input] of inputs) input.checked = input.value === value;
  };
  return { field, show };
}
