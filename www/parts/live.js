import { element, make, say } from "../dom.js";
import { verdict } from "../words.js";
import { announce } from "./announce.js";
import { pressable } from "./press.js";

const shownHeaders = ["ratelimit-policy", "ratelimit", "retry-after", "content-type"];
const historyLength = 60;
const noWorker =
  "No Worker responds here: this page came from a static file server. Start one with npm start, or deploy it with npx wrangler deploy.";

/** Sends hits to the Worker that served the page. */
export function liveWorker() {
  const button = element("live-press");
  pressable(button, async () => {
    const result = await hitWorker();
    if (result) showResult(result);
    else disable();
  });

  function disable() {
    button.disabled = true;
    element("live").dataset.off = "";
    say(element("live-note"), noWorker);
    announce(noWorker);
  }
}

/** Returns the response and its decision; undefined if no Worker responds. */
async function hitWorker() {
  try {
    const response = await fetch("demo/hit", { cache: "no-store" });
    const { decision } = await response.json();
    return decision && { response, decision };
  } catch {
    return undefined;
  }
}

function showResult({ response, decision }) {
  const { status, statusText, headers } = response;
  const received = shownHeaders
    .filter((name) => headers.has(name))
    .map((name) => `${name}: ${headers.get(name)}`);
  const line = `HTTP ${status} ${statusText || (status === 429 ? "Too Many Requests" : "OK")}`;
  say(element("live-headers"), ["GET /demo/hit", "", line, ...received].join("\n"));
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
