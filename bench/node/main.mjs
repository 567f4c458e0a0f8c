import { runParts } from "../parts.mjs";
import { memory } from "./memory.mjs";
import { pause } from "./pause.mjs";
import { plansOfCustomers } from "./plans.mjs";
import { size } from "./size.mjs";
import { startup } from "./startup.mjs";
import { packages } from "./subjects.mjs";
import { listeners, scripted, throughput } from "./throughput.mjs";

const parts = { throughput, scripted, listeners, memory, plans: plansOfCustomers, pause, size, startup };

await runParts(parts, packages, {
  section: "node",
  title: "Node and the browser",
  command: "npm run bench",
});
