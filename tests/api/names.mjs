import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isMain } from "../../scripts/lib/main.mjs";
import { inProject, root } from "../../scripts/lib/paths.mjs";
import { declaredLimiters } from "./declared.mjs";

/** Returns the public names of the package in a folder, by entry, with the members of classes and interfaces. */
export function packageNames(folder) {
  const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const entries = Object.entries(exports).filter(([path]) => path !== "./package.json");
  return entries
    .map(([path, conditions]) => [join("tollgate", path), ...entryNames(join(folder, typesOf(conditions)))])
    .map((lines) => `${lines.join("\n  ")}\n`)
    .join("\n");
}

/** Returns the types of an entry, under the first of its conditions: all declare the same names. */
const typesOf = (conditions) => conditions.types ?? typesOf(Object.values(conditions)[0]);

const entryNames = (file) => [...declaredIn(file)].map(([name, kind]) => kind(name)).sort();

/** Returns what a file of types exports: functions that describe it, by name. */
function declaredIn(file) {
  const text = readFileSync(file, "utf8").replaceAll(/\/\*[\s\S]*?\*\//g, "");
  const found = new Map();
  const imported = [...text.matchAll(/^import \{([^}]*)\} from "(\..*)";/gm)];
  const sourceOf = (names) => imported.find(([, those]) => names.includes(those.trim()))?.[2];
  for (const [, kind, name, base, rest] of text.matchAll(declaration)) {
    const source = base && sourceOf([base]);
    const inherited = source ? declaredIn(besideOf(file, source)).get(base).members : [];
    const own = kind === "type" ? [] : members(rest ?? "");
    found.set(name, described(kind, [...new Set([...own, ...inherited])]));
  }
  for (const [, isType, names, source] of text.matchAll(
    /^export (type )?(\{[^}]*\}|\*)(?: from "(.*)")?;/gm,
  )) {
    const from = source ?? sourceOf(names);
    const other = from === undefined ? found : declaredIn(besideOf(file, from));
    if (names === "*") for (const [name, kind] of other) found.set(name, kind);
    for (const [, own, exported] of names.matchAll(/(?:type )?(\w+)(?: as (\w+))?/g)) {
      const kind = other.get(own);
      if (kind === undefined) throw new Error(`${file} exports ${own}, which ${from} does not declare`);
      found.set(exported ?? own, isType && kind(own).startsWith("class") ? (name) => `type ${name}` : kind);
    }
  }
  if (/^export default/m.test(text)) found.set("default", (name) => `const ${name}`);
  return found;
}

const besideOf = (file, source) => join(dirname(file), source.replace(/\.ts$/, ".d.ts"));

const declaration =
  /^export (?:declare )?(?:abstract )?(class|interface|function|const|type) (\w+)(?: extends (\w+))?(?:.*\{((?:\n {4}.*|\n)*)\n\})?/gm;

const described = (kind, members) =>
  Object.assign(
    (name) => (members.length === 0 ? `${kind} ${name}` : `${kind} ${name}: ${members.join(", ")}`),
    { members },
  );

/** Returns the names of members, without those of nested types. */
const members = (body) => [
  ...new Set(
    [...body.matchAll(/^ {4}(?:static |readonly |get |set |abstract )*([\w$]+|\[[\w.]+\])\??[(:<]/gm)].map(
      ([, name]) => name,
    ),
  ),
];

/** Returns the public items of the crate by path, from the reference that `cargo doc` writes. */
export function crateNames() {
  const all = inProject("target/doc/tollgate/all.html");
  if (!existsSync(all))
    throw new Error("there is no reference of the crate yet; run: npm test -- --only rustdoc");
  const items = readFileSync(all, "utf8").matchAll(/<a href="(?:[\w/]+\/)?(\w+)\.\w+\.html">([^<]+)<\/a>/g);
  return `${[...items].map(([, kind, path]) => `${kind} ${path}`).join("\n")}\n`;
}

/** The file that pins each listing, and how it is written. */
const pins = {
  package: () => packageNames(root),
  limiters: () => declaredLimiters(root),
  crate: crateNames,
};

const header = (name) => `# The public names of the ${name}. After a change on purpose, and its build:
# node tests/api/names.mjs ${name} > tests/api/${name}.txt

`;

/** Returns the pinned listing. */
export const pinned = (name) =>
  readFileSync(inProject(`tests/api/${name}.txt`), "utf8").replace(header(name), "");

if (isMain(import.meta)) {
  const [, , name] = process.argv;
  process.stdout.write(header(name) + pins[name]());
}
