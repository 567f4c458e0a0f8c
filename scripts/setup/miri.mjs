import { ask, quiet } from "../lib/run.mjs";
import { dim, say } from "../lib/say.mjs";

const toolchain = "nightly";

/** Set where nightly cannot be had: what needs it is then skipped. */
let missing = null;

function check() {
  // Asked first, since rustup would try to download a toolchain that is named to cargo.
  const isInstalled = ask("rustup", ["toolchain", "list"])?.includes(toolchain);
  const version = isInstalled ? ask("cargo", [`+${toolchain}`, "miri", "--version"]) : null;
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

/** Finds undefined behaviour. It needs nightly, which builds nothing that ships. */
export const miri = {
  id: "miri",
  name: "Miri",
  what: "rustup toolchain install nightly --component miri,rust-src (half a minute)",
  check,
  make,
};
