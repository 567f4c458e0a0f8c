import { cargoTool } from "./cargo-tool.mjs";

/** The step of cargo-mutants, which changes the code and reports the changes that no test notices. */
export const cargoMutants = cargoTool({
  id: "cargoMutants",
  name: "cargo-mutants",
  version: "27.1.0",
  what: "compiling it with cargo (3 to 5 minutes)",
});
