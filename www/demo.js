const element = (id) => document.getElementById(id);
const historyLength = 40;

/** The headers a rate-limited client reads, in the order they are shown. */
const shownHeaders = ["ratelimit-policy", "ratelimit", "retry-after", "content-type"];

const milliseconds = (value) => (value === null ? "never" : `${value.toLocaleString("en")} ms`);

async function hit() {
  const response = await fetch("/demo/hit", { cache: "no-store" });
  return { response, body: await response.json() };
}

function showAnswer({ response, body }) {
  const { decision } = body;
  if (!decision) {
    showVerdict("none", `The Worker answered ${response.status}: ${body.title ?? "an error"}`);
    return;
  }
  const answer = decision.allowed ? "allowed" : "denied";
  const wait =
    decision.retryAfter === null
      ? "it can never pass"
      : `it would pass in ${milliseconds(decision.retryAfter)}`;
  showVerdict(answer, decision.allowed ? `Allowed. ${decision.remaining} left.` : `Denied: ${wait}.`);
  showDecision(decision);
  showResponse(response);
  addToHistory(answer);
}

function showVerdict(answer, words) {
  element("barrier").dataset.answer = answer;
  element("verdict").dataset.answer = answer;
  element("verdict").textContent = words;
}

function showDecision(decision) {
  const rows = [
    ["count", decision.count],
    ["limit", decision.limit],
    ["remaining", decision.remaining],
    ["retry after", milliseconds(decision.retryAfter)],
    ["reset after", milliseconds(decision.resetAfter)],
    ["policy", decision.policy],
  ];
  element("decision").replaceChildren(...rows.map(([name, value]) => row(name, value)));
}

function row(name, value) {
  const pair = document.createElement("div");
  const term = document.createElement("dt");
  const description = document.createElement("dd");
  term.textContent = name;
  description.textContent = value;
  pair.append(term, description);
  return pair;
}

function showResponse(response) {
  const status = `HTTP ${response.status} ${response.status === 429 ? "Too Many Requests" : "OK"}`;
  const headers = shownHeaders
    .filter((name) => response.headers.has(name))
    .map((name) => `${name}: ${response.headers.get(name)}`);
  element("response").textContent = ["GET /demo/hit", "", status, ...headers].join("\n");
}

function addToHistory(answer) {
  const item = document.createElement("li");
  item.className = answer;
  item.title = answer;
  item.setAttribute("aria-label", answer);
  const history = element("history");
  history.append(item);
  while (history.children.length > historyLength) history.firstElementChild.remove();
}

async function ask(times) {
  try {
    const answers = await Promise.all(Array.from({ length: times }, hit));
    for (const answer of answers) showAnswer(answer);
  } catch {
    showVerdict("none", "The Worker cannot be reached.");
  }
}

element("hit").addEventListener("click", () => ask(1));
element("burst").addEventListener("click", () => ask(10));
