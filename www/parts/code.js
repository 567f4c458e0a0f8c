import { policiesOf } from "../algorithms.js";
import { element, say } from "../dom.js";

const value = (each) => JSON.stringify(each);
const isConcurrency = ({ algorithm }) => algorithm === "concurrency";

function typescript(policy, cost, ban) {
  const fieldsOf = (each, indent) =>
    Object.entries(each).map(([name, field]) => `${indent}${name}: ${value(field)},`);
  const made = ban
    ? [
        "const limiter = new RateLimiter([",
        ...[policy, ban].flatMap((each) => ["  {", ...fieldsOf(each, "    "), "  },"]),
        "]);",
      ]
    : ["const limiter = new RateLimiter({", ...fieldsOf(policy, "  "), "});"];
  const args = `"user:42"${cost === 1 ? "" : `, ${cost}`}`;
  return [
    'import { RateLimiter } from "tollgate";',
    "",
    ...made,
    "",
    ...(isConcurrency(policy)
      ? [
          `const reservation = limiter.reserve(${args});`,
          "const { allowed } = reservation;",
          "// When the work has ended:",
          "reservation.settle();",
        ]
      : [`const { allowed, retryAfter } = limiter.hit(${args});`]),
  ].join("\n");
}

function rust(policy, cost, ban) {
  const { algorithm, limit, scale, ttl, denied, capacity, refillRate, leakRate, per } = policy;
  const numbers = limit ? [limit, value(scale ?? ttl)] : [capacity, refillRate ?? leakRate, value(per)];
  const free = denied === "free" ? ".denied(Denied::Free)?" : "";
  return [
    `use tollgate::{${free ? "Denied, " : ""}Limiter, Policy, ${isConcurrency(policy) ? "Reserve, " : ""}SystemClock};`,
    "",
    `let policy = Policy::${algorithm}(${numbers.join(", ")})?${free};`,
    ...(ban ? [`let ban = Policy::ban(${ban.after}, ${value(ban.scale)}, ${value(ban.for)})?;`] : []),
    `let mut limiter = Limiter::<String, _>::new(${ban ? "[policy, ban]" : "policy"}, SystemClock)?;`,
    "",
    ...(isConcurrency(policy)
      ? [
          "// 128 random bits, as an id.",
          `let reserving = limiter.reserve("user:42", Reserve::new(random).cost(${cost}))?;`,
          "// When the work has ended:",
          "if let Some(reservation) = reserving.reservation {",
          "    limiter.settle(reservation, None)?;",
          "}",
        ]
      : [`let decision = limiter.hit("user:42", ${cost})?;`]),
  ].join("\n");
}

function wrangler(policy, cost, ban) {
  const fieldsOf = (each) => Object.entries(each).map(([name, field]) => `${name} = ${value(field)}`);
  const fields = [
    ...fieldsOf(policy),
    ...(ban ? ["", "[vars.TOLLGATE.policies.ban]", ...fieldsOf(ban)] : []),
  ];
  // A rule makes no reservations: those come through the HTTP API or from another Worker.
  if (isConcurrency(policy)) return ["[vars.TOLLGATE.policies.api]", ...fields].join("\n");
  return [
    "[vars.TOLLGATE]",
    'upstream = "https://origin.example"',
    "",
    "[vars.TOLLGATE.policies.api]",
    ...fields,
    "",
    "[[vars.TOLLGATE.rules]]",
    'path = "/api/*"',
    'key = ["ip"]',
    `policies = ["api"${ban ? ', "ban"' : ""}]`,
    ...(cost === 1 ? [] : [`cost = ${cost}`]),
  ].join("\n");
}

/** Functions that write a policy, and the ban beside it, in each language. */
export const languages = { typescript, rust, wrangler };

/** Shows the policy as code to copy. */
export function codePanel(link) {
  let language = "typescript";
  let shown;
  const render = () => {
    for (const tab of document.querySelectorAll("[data-language]")) {
      const chosen = tab.dataset.language === language;
      tab.setAttribute("aria-selected", chosen);
      tab.tabIndex = chosen ? 0 : -1;
      if (chosen) element("code-panel").setAttribute("aria-labelledby", tab.id);
    }
    if (!shown) return;
    const [policy, ban] = policiesOf(shown.algorithm, shown);
    say(element("code"), languages[language](policy, shown.cost, ban));
  };
  const names = Object.keys(languages);
  const tabs = element("languages");
  tabs.addEventListener("click", ({ target }) => {
    language = target.dataset.language ?? language;
    render();
  });
  tabs.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    language = names[(names.indexOf(language) + step + names.length) % names.length];
    render();
    element(`language-${language}`).focus();
  });
  copyButton(element("copy"), () => element("code").textContent);
  copyButton(element("copy-link"), link);
  return (state) => {
    shown = state;
    render();
  };
}

function copyButton(button, text) {
  const label = button.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      say(button, "Copied");
    } catch {
      say(button, "Copying failed");
    }
    setTimeout(() => say(button, label), 1_500);
  });
}
