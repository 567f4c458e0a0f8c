import { readFileSync, writeFileSync } from "node:fs";
import { inProject } from "../scripts/lib/paths.mjs";
import { table } from "./results.mjs";

const [start, end] = ["<!-- numbers: from bench/RESULTS.md, by npm run bench -->", "<!-- /numbers -->"];

/** What the tables of the summary take from which table of the results, row by row and column by column. */
const summary = [
  {
    title: "In Node, `fix_window`",
    columns: [
      ["a hit, 65,536 keys", "Node and the browser", "Time of a hit", "ns a hit", "65,536 keys", "ns"],
      [
        "memory per key",
        "Node and the browser",
        "Memory, 200,000 keys",
        "",
        "bytes a key beyond the key",
        "B",
      ],
      [
        "import to first decision",
        "Node and the browser",
        "From import to the first decision",
        "",
        "ms",
        "ms",
      ],
      [
        "in a bundle, gzipped",
        "Node and the browser",
        "Size in a browser's bundle",
        "minified and gzipped",
        "kB",
        "kB",
      ],
    ],
    rows: [
      [
        "**tollgate**",
        "tollgate fix_window",
        "tollgate fix_window",
        "tollgate",
        "tollgate, RateLimiter alone",
      ],
      ["a hand-written `Map`", "hand-written Map", "hand-written Map", null, null],
      ["express-rate-limit", ...Array(3).fill("express-rate-limit MemoryStore"), null],
      [
        "rate-limiter-flexible",
        ...Array(3).fill("rate-limiter-flexible memory"),
        "rate-limiter-flexible, memory alone",
      ],
    ],
  },
  {
    title: "In Rust, `token_bucket`",
    columns: [
      ["a hit, 65,536 keys", "Native Rust", "Time per hit", "", "65536 keys, system clock"],
      ["memory per key", "Native Rust", "Bytes per key", "", "all in", "B"],
      ["longest hit as a million keys arrive", "Native Rust", "The longest hit", "", "longest"],
    ],
    rows: [
      ["**tollgate**", ...Array(3).fill("**tollgate**, token_bucket")],
      ["governor, `HashMap`", "governor, HashMap, SipHash", ...Array(2).fill("governor, HashMap")],
    ],
  },
  {
    title: "In workerd, hits per second relative to a hand-written Worker and object",
    columns: ["one object", "1,000 objects"].map((column) => [
      column,
      "The Worker",
      "Speed",
      "as ratios, by",
      `${column}: hits a second`,
    ]),
    rows: [
      ["allowed, and stored", "allowed, Tollgate's object ÷ allowed, object by hand"],
      ["allowed with `credit`", "allowed, Tollgate's object with credit ÷ allowed, object by hand"],
      [
        "allowed through the gateway with `leases` and `credit`",
        "allowed, Tollgate's gateway with leases ÷ allowed, gateway by hand",
      ],
      [
        "denied by the deny cache, relative to its allowed hits",
        "denied, Tollgate's gateway ÷ allowed, object by hand",
      ],
    ].map(([name, row]) => [name, row, row]),
  },
  {
    title: "Over Redis, hits per second (Tollgate's multiple)",
    columns: [
      ["one key, 10 processes", "Redis", "Hits a second", "", "one key, 10 processes"],
      ["1,000 keys, 10 processes", "Redis", "Hits a second", "", "1,000 keys, 10 processes"],
      ["a flood of denials, 4 processes", "Redis", "A flood of denials", "", "4 processes"],
    ],
    rows: [
      ["**tollgate**", ...Array(3).fill("**tollgate**")],
      ["**tollgate, leases of 1 s**", ...Array(3).fill("**tollgate, leases of 1 s**")],
      ["rate-limiter-flexible", ...Array(3).fill("rate-limiter-flexible")],
      ["rate-limit-redis", ...Array(3).fill("rate-limit-redis")],
    ],
  },
];

/** The numbers that the README shows, as Markdown. */
export function numbers(results = readFileSync(new URL("RESULTS.md", import.meta.url), "utf8")) {
  const found = tablesIn(results);
  const cell = ([, section, heading, corner, column, unit], row) => {
    if (row === null) return "";
    const value = found
      .find((one) => one.section === section && one.heading === heading && one.head[0] === corner)
      ?.row(row)?.[column];
    if (value === undefined)
      throw new Error(`bench/RESULTS.md: under "${section}", "${heading}" there is no "${row}", "${column}"`);
    // Where a cell also has ratios, the number comes first.
    return [shortened(value.split(", ")[0]), unit].filter(Boolean).join(" ");
  };
  return summary
    .map(({ title, columns, rows }) => {
      const lines = rows.map(([name, ...ofRow]) => [
        name,
        ...columns.map((column, at) => cell(column, ofRow[at])),
      ]);
      return table([title, ...columns.map(([name]) => name)], lines);
    })
    .join("\n\n");
}

const larger = { µs: "ms", k: "M" };

/** Writes a value of a thousand units and more in the next larger unit, with three digits. */
const shortened = (value) =>
  value.replace(/^(\d{4,}(?:\.\d+)?) (µs|k)(?!\w)/, (_, digits, unit) => {
    const thousands = Number(digits) / 1_000;
    return `${Number(thousands.toPrecision(3))} ${larger[unit]}`;
  });

/** The README around its numbers: what is before them, they themselves, and what is after. */
function parted(readme) {
  const [from, to] = [readme.indexOf(start), readme.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`README.md: there is no ${start} … ${end}`);
  return [
    readme.slice(0, from + start.length),
    readme.slice(from + start.length, to).trim(),
    readme.slice(to),
  ];
}

/** The numbers that are in the README. */
export const shown = (readme) => parted(readme)[1];

/** Puts the numbers into the README. */
export function writeNumbers() {
  const file = inProject("README.md");
  const [before, , after] = parted(readFileSync(file, "utf8"));
  writeFileSync(file, `${before}\n${numbers()}\n${after}`);
}

const cells = (line) =>
  line
    .split("|")
    .slice(1, -1)
    .map((text) => text.trim());

/** Every table, with the headings it is under. Of two that look alike the first is found. */
function tablesIn(results) {
  const tables = [];
  let [section, heading, current] = ["", "", undefined];
  for (const line of results.split("\n")) {
    if (line.startsWith("## ")) [section, heading] = [line.slice(3), ""];
    if (line.startsWith("### ")) heading = line.slice(4);
    if (!line.startsWith("|")) current = undefined;
    else if (current === undefined) {
      const lines = [];
      const head = cells(line);
      const row = (name) => {
        const values = lines.find(([first]) => first === name);
        return values && Object.fromEntries(head.map((column, at) => [column, values[at]]));
      };
      current = { section, heading, head, lines, row };
      tables.push(current);
    } else current.lines.push(cells(line));
  }
  return tables;
}
