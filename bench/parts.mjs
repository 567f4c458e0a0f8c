import { parseArgs } from "node:util";
import { circumstances, save } from "./results.mjs";

/** Runs the parts of a bench, all or those that the command line names, and with `--save` keeps what they came to. */
export async function runParts(parts, packages, { section, title, command }) {
  const { values, positionals } = parseArgs({
    options: { save: { type: "boolean" } },
    allowPositionals: true,
  });
  const known = Object.keys(parts);
  const unknown = positionals.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`there is no part ${unknown}; there are ${known.join(", ")}`);
  const texts = [circumstances(packages)];
  for (const name of positionals.length > 0 ? positionals : known) texts.push(await parts[name]());
  const text = texts.join("\n\n");
  console.log(text);
  if (values.save) save(section, title, `Reproduce with \`${command}\`.\n\n${text}`);
}
