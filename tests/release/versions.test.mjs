// The version is the same wherever it is written, and the changelog has its entry.

import assert from "node:assert/strict";
import test from "node:test";
import { newest, plain, versions } from "../../scripts/release/versions.mjs";

test("the version is the same wherever it is written", () => {
  const found = versions();
  const { version } = newest();
  assert.match(version, /^\d+\.\d+\.\d+$/);
  for (const [place, written] of Object.entries(found)) assert.equal(written, version, place);
});

test("the newest entry of a change log, with its date and its changes", () => {
  const log = (note) =>
    `# Changelog\n\n## 1.2.3${note}\n\n- One.\n- Two\n  lines.\n\n## 1.2.2 (2026-01-01)\n\n- Old.\n`;
  assert.deepEqual(newest(log(" (2026-02-03)")), { version: "1.2.3", date: "2026-02-03", changes: 2 });
  assert.deepEqual(newest(log(" (unreleased)")), { version: "1.2.3", date: undefined, changes: 2 });
  assert.deepEqual(newest(log("")), { version: "1.2.3", date: undefined, changes: 2 });
  const [head, ...entries] = log(" (2026-02-03)").split("## ");
  const pending = [head, "Unreleased\n\n- Next.\n\n", ...entries].join("## ");
  assert.deepEqual(newest(pending), newest(log(" (2026-02-03)")));
  assert.deepEqual(newest("## 1.0.0 (2026-02-03)\n"), { version: "1.0.0", date: "2026-02-03", changes: 0 });
});

test("an address in all its spellings", () => {
  for (const url of ["git+https://host/a/b.git", "https://host/a/b", "git@host:a/b.git"])
    assert.equal(plain(url), "https://host/a/b");
  assert.equal(plain(undefined), undefined);
});
