import { element, say } from "../dom.js";
import { span } from "../words.js";

/** Shows the state of the chosen policy in a few numbers. */
export function summary({ simulation, now }) {
  const { retryAfter } = simulation.peek(now);
  say(element("passed"), String(simulation.allowed));
  say(element("denied-hits"), String(simulation.denied));
  say(element("open"), String(simulation.open));
  say(element("remaining"), String(simulation.left()));
  say(element("wait"), retryAfter === 0 ? "none" : span(retryAfter));
}
