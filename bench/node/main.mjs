import { parseArgs } from "node:util";
import { circumstances, save } from "../results.mjs";
import { memory } from "./memory.mjs";
import { pause } from "./pause.mjs";
import { size } from "./size.mjs";
import { startup } from "./startup.mjs";
import { packages } from "./subjects.mjs";
import { throughput } from "./throughput.mjs";

const parts = { throughput, memory, pause, size, startup };
const { values, positionals } = parseArgs({ options: { save: { type: "boolean" } }, allowPositionals: true });
const chosen = positionals.length > 0 ? positionals : Object.keys(parts);

const texts = [circumstances(packages)];
for (const name of chosen) texts.push(await parts[name]());
const text = texts.join("\n\n");
console.log(text);
if (values.save) save("node", "Node and the browser", `Reproduce with \`npm run bench\`.\n\n${text}`);
