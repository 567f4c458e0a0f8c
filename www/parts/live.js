import { element, make, say } from "../dom.js";
import { verdict } from "../words.js";
import { announce } from "./announce.js";
import { pressable } from "./press.js";

const shownHeaders = ["ratelimit-policy", "ratelimit", "retry-after", "content-type"];
const historyLength = 60;
const nobody =
  "No Worker answers here: this page came from a plain file server. Start one with npm start, or deploy it with npx wrangler deploy.";

/** The same press, but the Worker that served the page decides. */
export function liveWorker() {
  const button = element("live-press");
  pressable(button, async () => {
    const answer = await ask();
    if (answer) showAnswer(answer);
    else refuse();
  });

  function refuse() {
    button.disabled = true;
    element("live").dataset.off = "";
    say(element("live-note"), nobody);
    announce(nobody);
  }
}

async function ask() {
  try {
    const response = await fetch("demo/hit", { cache: "no-store" });
    const { decision } = await response.json();
    return decision && { response, decision };
  } catch {
    return undefined;
  }
}

function showAnswer({ response, decision }) {
  const { status, statusText, headers } = response;
  const came = shownHeaders
    .filter((name) => headers.has(name))
    .map((name) => `${name}: ${headers.get(name)}`);
  const line = `HTTP ${status} ${statusText || (status === 429 ? "Too Many Requests" : "OK")}`;
  say(element("live-headers"), ["GET /demo/hit", "", line, ...came].join("\n"));
  say(element("live-note"), verdict(decision));
  announce(`The Worker: ${verdict(decision)}`);
  const history = element("live-history");
  history.append(
    make(
      "li",
      { class: decision.allowed ? "allowed" : "denied" },
      make("span", {}, decision.allowed ? "allowed" : "denied"),
    ),
  );
  while (history.children.length > historyLength) history.firstElementChild.remove();
}
