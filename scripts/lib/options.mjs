import { parseArgs } from "node:util";
import { Failure, report } from "./say.mjs";

/** What the command line says; what it cannot say ends the program with how it is used. */
export function optionsGiven(options, usage) {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    report(new Failure(error.message, { remedy: usage }));
    process.exit();
  }
}
