import { element, say } from "../dom.js";

/** Shows how much of the limit is used, open and left, as a bar and in words. */
export function showGauge({ simulation }) {
  const { limit, open } = simulation;
  const left = simulation.left();
  const used = Math.max(limit - left - open, 0);
  const gauge = element("gauge");
  for (const [name, amount] of Object.entries({ used, open }))
    gauge.style.setProperty(`--${name}`, `${Math.min(amount / limit, 1) * 100}%`);
  say(element("gauge-note"), `${used} used, ${open} open, ${left} left of ${limit}.`);
}
