import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { median, table } from "../results.mjs";
import { running, worker } from "./subjects.mjs";

const load = fileURLToPath(new URL("load.mjs", import.meta.url));
const kinds = ["one rule", "four rules in turn", "eight buckets", "eight buckets, 100 open"];
const entry = worker("rows.js");

/** Measures one object whose key has several rows: with four rules in turn, and with a hundred open reservations. */
export async function rows() {
  const subjects = Object.fromEntries(
    kinds.map((kind) => [kind, { entry, bindings: { TOLLGATE: { kind } } }]),
  );
  const medians = await running(subjects, async (started) => {
    const servers = kinds.map((kind) => ({ port: started[kind].port, pid: started[kind].pid, lead: 2_000 }));
    const args = {
      connections: 16,
      rounds: 7,
      turn: 500,
      warmUp: 6_000,
      path: "/",
      status: "200",
      keys: 1,
      servers,
    };
    const { stdout } = await promisify(execFile)(process.execPath, [load, JSON.stringify(args)]);
    return JSON.parse(stdout).map((all) => ({
      rate: median(all.map(({ rate }) => rate)),
      cpu: median(all.map(({ cpu }) => cpu ?? Number.NaN)),
    }));
  });
  const ratio = (one, other) => [
    `${kinds[one]} ÷ ${kinds[other]}`,
    (medians[one].rate / medians[other].rate).toFixed(2),
    (medians[other].cpu / medians[one].cpu).toFixed(2),
  ];
  return [
    "### Rows",
    "One object, 16 connections, the medians of 7 rounds in which all take turns of 500 ms. Each hit is allowed, and written before it is answered.",
    table(["as ratios, by", "hits a second", "CPU of a hit"], [ratio(1, 0), ratio(3, 2)]),
    table(
      ["", "hits a second", "µs of CPU a hit"],
      kinds.map((kind, at) => [kind, medians[at].rate.toFixed(0), medians[at].cpu.toFixed(0)]),
    ),
  ].join("\n\n");
}
