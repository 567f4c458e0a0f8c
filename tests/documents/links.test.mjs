// Every link in the documents leads to a file and a heading that exist.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { inProject } from "../../scripts/lib/paths.mjs";

const markdown = (folder) =>
  readdirSync(inProject(folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name));

const documents = [...markdown("."), ...markdown("docs"), ...markdown("bench")];

/** What a document leads to within the project: links, and pictures. */
function targets(document) {
  const text = readFileSync(inProject(document), "utf8").replaceAll(/^```[\s\S]*?^```$/gm, "");
  const found = [...text.matchAll(/\]\(([^)\s]+)\)/g), ...text.matchAll(/ src(?:set)?="([^"]+)"/g)];
  return found.map(([, target]) => target).filter((target) => !/^https?:/.test(target));
}

for (const document of documents)
  test(`${document}: every link leads somewhere`, () => {
    for (const target of targets(document)) {
      const [path] = target.split("#");
      assert.ok(existsSync(inProject(dirname(document), path)), `there is no ${target}`);
    }
  });

test("links are found", () => {
  const found = targets("README.md");
  for (const target of ["docs/gateway.md", "docs/playground-dark.png"])
    assert.ok(found.includes(target), target);
});
