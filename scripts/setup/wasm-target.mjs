import { existsSync } from "node:fs";
import { join } from "node:path";
import { outputOf, quiet } from "../lib/run.mjs";
import { dim, Failure, say } from "../lib/say.mjs";
import { isDebian } from "./debian.mjs";
import { debianRust, makeDebianRust } from "./debian-rust.mjs";

const target = "wasm32-unknown-unknown";

function ownRust() {
  const sysroot = outputOf("rustc", ["--print", "sysroot"]);
  if (sysroot === null) {
    throw new Failure("there is no rustc in PATH", {
      remedy: "install Rust from https://rustup.rs, open a new shell, then run this again.",
    });
  }
  const hasTarget = existsSync(join(sysroot, "lib/rustlib", target, "lib"));
  return hasTarget ? { from: "rustup", id: "rustup", cargo: "cargo", env: process.env } : null;
}

async function make() {
  try {
    await quiet("rustup target add", "rustup", ["target", "add", target]);
  } catch (error) {
    if (!isDebian()) {
      error.remedy = `make \`rustup target add ${target}\` work (it needs the network), then run this again.`;
      throw error;
    }
    say(
      dim(
        "      rustup cannot download it here; taking Debian's Rust instead, into the tools folder (about a minute)",
      ),
    );
    await makeDebianRust();
  }
}

/** The step of the wasm target. Its result is a Rust that can build wasm: `{ from, id, cargo, env }`. */
export const wasmTarget = {
  id: "rust",
  name: "wasm32 target",
  what: `rustup target add ${target}`,
  check: () => ownRust() ?? debianRust(),
  make,
};
