import { parseArgs } from "node:util";
import { Failure, report } from "./say.mjs";

/** Returns the options of the command line. If they are invalid, prints the usage and ends the program. */
export function optionsGiven(options, usage) {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    report(new Failure(error.message, { remedy: usage }));
    process.exit();
  }
}
