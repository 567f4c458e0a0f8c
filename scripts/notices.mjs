import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isMain } from "./lib/main.mjs";
import { inProject } from "./lib/paths.mjs";
import { outputOf } from "./lib/run.mjs";
import { bundledList } from "./package.mjs";

/** Where the notice is. */
export const notice = inProject("THIRD_PARTY.md");

/** The crates whose wasm is in the npm package. */
const bindings = ["headers", "lease", "npm", "redis", "throttle", "worker"].map((name) => `tollgate-${name}`);

/** Returns the npm packages of which code is bundled: name, version, licence and folder. */
function bundledPackages() {
  const folders = new Set(JSON.parse(readFileSync(bundledList, "utf8")));
  return [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(inProject(folder, "package.json"), "utf8"));
    return { from: "npm", name, version, license, folder: inProject(folder) };
  });
}

/** Returns the crates of which code is in a wasm. Macros run when they are compiled, and are in none. */
function compiledCrates() {
  const flags = [
    "metadata",
    "--format-version",
    "1",
    "--filter-platform",
    "wasm32-unknown-unknown",
    "--locked",
  ];
  const { packages, resolve } = JSON.parse(outputOf("cargo", flags));
  const byId = new Map(packages.map((each) => [each.id, each]));
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const found = new Map();
  const waiting = packages.filter(({ name }) => bindings.includes(name)).map(({ id }) => id);
  while (waiting.length > 0) {
    const id = waiting.pop();
    const crate = byId.get(id);
    const isMacro = crate.targets.some(({ kind }) => kind.includes("proc-macro"));
    if (found.has(id) || isMacro) continue;
    found.set(id, crate);
    for (const { pkg, dep_kinds } of nodes.get(id).deps)
      if (dep_kinds.some(({ kind }) => kind === null)) waiting.push(pkg);
  }
  return [...found.values()]
    .filter(({ source }) => source !== null)
    .map(({ name, version, license, manifest_path }) => ({
      from: "crates.io",
      name,
      version,
      license,
      folder: dirname(manifest_path),
    }));
}

/** Returns all third parties, in the order of their names. */
export const thirdParties = () =>
  [...bundledPackages(), ...compiledCrates()].sort((one, other) =>
    `${one.name} ${one.version}` < `${other.name} ${other.version}` ? -1 : 1,
  );

/** Returns the text of a licence: MIT's where there is a choice. */
function textOf({ name, license, folder }) {
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|unlicense)/i.test(file));
  const chosen =
    files.find((file) => /mit/i.test(file)) ?? files.find((file) => !/apache/i.test(file)) ?? files[0];
  if (chosen !== undefined) return readFileSync(join(folder, chosen), "utf8").trim().replaceAll("\r\n", "\n");
  throw new Error(`${name} (${license}) has no file with its licence in ${folder}`);
}

/** Returns the notice. */
export function noticeText() {
  const parties = thirdParties();
  const texts = new Map();
  for (const party of parties) {
    const text = textOf(party);
    texts.set(text, [...(texts.get(text) ?? []), party]);
  }
  const sections = [...texts].map(
    ([text, all]) =>
      `## ${all.map(({ name, version }) => `${name} ${version}`).join(", ")}\n\n${[...new Set(all.map(({ license }) => license))].join("; ")}\n\n\`\`\`text\n${text}\n\`\`\`\n`,
  );
  return `# Third-party licences

Tollgate is under the licence in \`LICENSE\`. The npm package includes code of these packages and crates: the packages in
the command \`tollgate\`, the crates in its wasm, which also includes parts of Rust's standard library (MIT or Apache-2.0,
The Rust Project Developers). The crate includes no code of others; what it depends on has its own licences.

${sections.join("\n")}`;
}

if (isMain(import.meta)) {
  if (!existsSync(bundledList)) throw new Error("build the package first: npm run build");
  writeFileSync(notice, noticeText());
}
