import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";

const file = new URL("RESULTS.md", import.meta.url);
const manifest = (name) =>
  JSON.parse(readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url)));

/** The machine and the versions, so that numbers can be compared with later ones. */
export function circumstances(packages) {
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}`;
  const versions = packages.map((name) => `${name} ${manifest(name).version}`);
  return [machine, `Node ${process.versions.node}`, ...versions, new Date().toISOString().slice(0, 10)].join(
    ", ",
  );
}

export const median = (numbers) => numbers.toSorted((one, other) => one - other)[numbers.length >> 1];

/** A table in Markdown. */
export function table(head, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, column) => (column === 0 ? "---" : "---:"))), ...rows.map(line)].join(
    "\n",
  );
}

/** Puts a text into its own section of RESULTS.md, and leaves all others as they are. */
export function save(name, title, text) {
  const [start, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const section = `${start}\n## ${title}\n\n${text}\n${end}`;
  let before = "# Results\n";
  try {
    before = readFileSync(file, "utf8");
  } catch {
    // The first results of all.
  }
  const [from, to] = [before.indexOf(start), before.indexOf(end)];
  const after =
    from < 0
      ? `${before.trimEnd()}\n\n${section}\n`
      : before.slice(0, from) + section + before.slice(to + end.length);
  writeFileSync(file, after);
}
