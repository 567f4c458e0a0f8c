// Several processes on one file of SQLite admit exactly the limit, and what a killed process was allowed is not forgotten.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { describe } from "node:test";
import { StoreLimiter } from "tollgate/store";
import { SqliteStore } from "../../examples/store-sqlite/store.mjs";

const worker = new URL("lib/worker.mjs", import.meta.url);
const opener = new URL("lib/opener.mjs", import.meta.url);
const timeout = 180_000;

/** A file that is there until the test ends. */
function freshFile(t) {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-store-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "limits.sqlite");
}

/** Starts processes that hit one key; `onAllowed` is called with each process that reports an allowed hit. */
async function fleet(t, { file, policy, processes, hits, inFlight }, onAllowed = () => {}) {
  const args = [file, hits, inFlight, JSON.stringify(policy)].map(String);
  const members = Array.from({ length: processes }, () => fork(worker, args));
  t.after(() => {
    for (const member of members) member.kill("SIGKILL");
  });
  await Promise.all(members.map(ready));
  return Promise.all(
    members.map(async (member) => {
      const report = { allowed: 0, denied: 0, stats: undefined };
      const exit = once(member, "exit");
      const finished = new Promise((resolve) => {
        member.on("message", ({ allowed, stats }) => {
          if (stats !== undefined) resolve(Object.assign(report, { stats }));
          else if (!allowed) report.denied++;
          else {
            report.allowed++;
            onAllowed(member, report);
          }
        });
      });
      member.send("start");
      await Promise.race([finished, exit]);
      if (member.connected) member.disconnect();
      await exit;
      return report;
    }),
  );
}

/** Waits until a process says that it is ready; fails if it ends before. */
const ready = (member) =>
  new Promise((resolve, reject) => {
    member.once("message", resolve);
    member.once("exit", (code) => reject(new Error(`a process ended with ${code} before it was ready`)));
  });

const sum = (reports, field) => reports.reduce((sum, report) => sum + report[field], 0);

const policies = [
  { algorithm: "fix_window", limit: 100, scale: "month" },
  { algorithm: "sliding_window", limit: 100, scale: "52w" },
  { algorithm: "token_bucket", capacity: 100, refillRate: 1, per: "52w" },
];

test("four processes that open new files at once all write to each", { timeout }, async (t) => {
  const [folder, files] = [join(freshFile(t), ".."), 60];
  const members = Array.from({ length: 4 }, () => fork(opener, [folder, `${files}`]));
  await Promise.all(members.map(ready));
  const codes = members.map((member) => once(member, "exit"));
  for (const member of members) member.send("start");
  assert.deepEqual((await Promise.all(codes)).flat(), [0, null, 0, null, 0, null, 0, null]);
  for (let number = 0; number < files; number++) {
    const store = new SqliteStore(join(folder, `${number}.sqlite`));
    for (const { pid } of members) assert.equal(store.get(`${pid}`), "text");
  }
});

describe("exactly the limit", () => {
  for (const policy of policies)
    test(`${policy.algorithm}: four processes, one hit at a time and ten at a time`, {
      timeout,
    }, async (t) => {
      for (const inFlight of [1, 10]) {
        const reports = await fleet(t, { file: freshFile(t), policy, processes: 4, hits: 60, inFlight });
        assert.equal(sum(reports, "allowed"), 100);
        assert.equal(sum(reports, "denied"), 140);
        const tries = reports.map(({ stats: { swaps, conflicts } }) => `${swaps} swaps, ${conflicts} lost`);
        t.diagnostic(`${inFlight} at a time: ${tries.join("; ")}`);
      }
    });
});

test("processes that are killed: every hit that was reported as allowed is counted", {
  timeout,
}, async (t) => {
  const policy = { algorithm: "sliding_counter", limit: 1_000, scale: "52w" };
  for (let round = 0; round < 3; round++) {
    const file = freshFile(t);
    let killed = 0;
    const reports = await fleet(
      t,
      { file, policy, processes: 4, hits: 100, inFlight: 5 },
      (member, { allowed }) => {
        // In the middle of its work, with others under way.
        if (allowed < 20 + 10 * round || killed === 3) return;
        killed += Number(member.kill("SIGKILL"));
      },
    );
    assert.equal(killed, 3);
    const counted = await new StoreLimiter(policy, { store: new SqliteStore(file) }).get("hot");
    const allowed = sum(reports, "allowed");
    // A process may have been killed before it reported the hits of its last two batches.
    assert.ok(allowed <= counted && counted <= allowed + 3 * 10, `${allowed} allowed, ${counted} counted`);
    t.diagnostic(`${allowed} reported, ${counted} counted`);
  }
});

test("a killed process: the next ones admit only what is left", { timeout }, async (t) => {
  const [file, policy] = [freshFile(t), { algorithm: "fix_window", limit: 100, scale: "month" }];
  const common = { file, policy, processes: 2, inFlight: 3 };
  const first = await fleet(
    t,
    { ...common, hits: 400 },
    (member, { allowed }) => allowed > 10 && member.kill("SIGKILL"),
  );
  const second = await fleet(t, { ...common, hits: 100 });
  const all = sum(first, "allowed") + sum(second, "allowed");
  assert.ok(all <= 100, `${all} allowed`);
  // What was counted and not reported died with its process: at most two batches of each.
  assert.ok(all >= 100 - 2 * 6, `${all} allowed`);
});
