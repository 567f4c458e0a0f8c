import { outputOf, quiet } from "../lib/run.mjs";
import { dim, say } from "../lib/say.mjs";

const toolchain = "nightly";

/** Set if nightly cannot be installed: the suites that need it are then skipped. */
let missing = null;

function check() {
  // Checked first, since rustup would try to download a toolchain that is an argument of cargo.
  const isInstalled = outputOf("rustup", ["toolchain", "list"])?.includes(toolchain);
  const version = isInstalled ? outputOf("cargo", [`+${toolchain}`, "miri", "--version"]) : null;
  return version === null ? missing : { cargo: ["cargo", `+${toolchain}`, "miri"] };
}

async function make() {
  const components = ["--component", "miri", "--component", "rust-src"];
  try {
    await quiet("nightly", "rustup", [
      "toolchain",
      "install",
      toolchain,
      "--profile",
      "minimal",
      ...components,
    ]);
    await quiet("miri setup", "cargo", [`+${toolchain}`, "miri", "setup"]);
  } catch {
    missing = { why: "rustup cannot install nightly with miri and rust-src here" };
    say(dim(`      ${missing.why}; the suite that needs it is skipped`));
  }
}

/** The step of Miri, which finds undefined behaviour. It needs nightly, which is not used for builds. */
export const miri = {
  id: "miri",
  name: "Miri",
  what: "rustup toolchain install nightly --component miri,rust-src (half a minute)",
  check,
  make,
};
