import { cargoTool } from "./cargo-tool.mjs";

/** Builds Workers in Rust. It checks that the `worker` crate is of its own version. */
export const workerBuild = cargoTool({
  id: "workerBuild",
  name: "worker-build",
  crate: "worker",
  what: "compiling it with cargo (2 to 3 minutes)",
});
