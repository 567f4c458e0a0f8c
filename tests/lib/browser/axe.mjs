import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** The source of axe, for pages that serve none. */
export const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** In the page: keeps what its Content-Security-Policy refused. */
export const keepRefused = () => {
  globalThis.refused = [];
  addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
    globalThis.refused.push(`${violatedDirective} ${blockedURI}`),
  );
};

/** Loads axe as a script of the site, which the page's policy applies to. */
const fromSite = (page) => page.addScriptTag({ url: "/axe.js" });

/** Loads axe where a page may load no script at all. */
export const pastPolicy = (page) => page.evaluate(axe);

/** What axe and a narrow screen have against a page. */
export async function objections(page, load = fromSite) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await load(page);
  const { violations, sideways } = await page.evaluate(async () => ({
    violations: (await globalThis.axe.run()).violations.map(({ id, nodes }) => [
      id,
      ...nodes.map(({ html }) => html),
    ]),
    sideways: document.documentElement.scrollWidth - innerWidth,
  }));
  return [...violations, sideways];
}
