import { parseArgs } from "node:util";
import { circumstances, save } from "../results.mjs";
import { cost } from "./cost.mjs";
import { size } from "./size.mjs";
import { speed } from "./speed.mjs";
import { startup } from "./startup.mjs";
import { packages } from "./subjects.mjs";

const parts = { speed, cost, size, startup };
const { values, positionals } = parseArgs({ options: { save: { type: "boolean" } }, allowPositionals: true });
const chosen = positionals.length > 0 ? positionals : Object.keys(parts);

const texts = [circumstances(packages)];
for (const name of chosen) texts.push(await parts[name]());
const text = texts.join("\n\n");
console.log(text);
if (values.save) save("worker", "The Worker", `Reproduce with \`npm run bench -- worker\`.\n\n${text}`);
