import { runParts } from "../parts.mjs";
import { cost } from "./cost.mjs";
import { plan } from "./plan.mjs";
import { rows } from "./rows.mjs";
import { size } from "./size.mjs";
import { speed } from "./speed.mjs";
import { startup } from "./startup.mjs";
import { packages } from "./subjects.mjs";

const parts = { speed, rows, cost, plan, size, startup };

await runParts(parts, packages, {
  section: "worker",
  title: "The Worker",
  command: "npm run bench -- worker",
});
