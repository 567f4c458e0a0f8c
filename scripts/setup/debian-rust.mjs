import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { finished } from "../lib/finished.mjs";
import { tools, withPath } from "../lib/paths.mjs";
import { outputOf, quiet } from "../lib/run.mjs";
import { Failure } from "../lib/say.mjs";
import { readText } from "../lib/text.mjs";
import { candidate, unpack, updateLists, wrap } from "./debian.mjs";

const home = join(tools, "debian-rust");
const oldest = [1, 91];

/** Debian's packages of Rust: the newer one that its browsers are built with, and the plain one. */
const families = [
  ["rustc-web", "cargo-web", "rust-web-src"],
  ["rustc", "cargo", "rust-src"],
];

function newEnough(version) {
  const [major, minor] = (version ?? "0.0").split(".").map(Number);
  return major > oldest[0] || (major === oldest[0] && minor >= oldest[1]);
}

const environment = (folder) => ({ ...withPath([join(folder, "bin")]), RUSTC: join(folder, "bin/rustc") });

/** Returns Debian's Rust with its wasm32 standard library; null if it is not set up. */
export function debianRust() {
  const id = readText(join(home, "id"));
  if (id === null) return null;
  return { from: "debian", id, cargo: join(home, "bin/cargo"), env: environment(home) };
}

export async function makeDebianRust() {
  await updateLists();
  const family = families.find(([rustc]) => newEnough(candidate(rustc)));
  if (!family) {
    throw new Failure(`this Debian has no Rust of at least ${oldest.join(".")}`, {
      remedy:
        "make `rustup target add wasm32-unknown-unknown` work (it needs the network), then run this again.",
    });
  }
  await finished(home, async (folder) => {
    await unpack(folder, family);
    for (const name of ["cargo", "rustc", "rustdoc"]) wrap(folder, name, `usr/bin/${name}`);
    await addLinker(folder);
    await addStandardLibrary(folder);
    // A new id means a new target folder: cargo does not notice a rebuilt standard library.
    writeFileSync(join(folder, "id"), Date.now().toString(36));
  });
}

/** Adds a linker beside the libraries of rustc, where it looks for one. LLD must be of the same LLVM. */
async function addLinker(folder) {
  const about = outputOf(join(folder, "bin/rustc"), ["-vV"]) ?? "";
  const host = about.match(/^host: (.+)$/m)?.[1];
  const llvm = about.match(/^LLVM version: (\d+)/m)?.[1];
  if (!host || !llvm) throw new Failure("Debian's rustc does not run from its folder", { output: about });
  await unpack(folder, [`lld-${llvm}`]);
  const programs = join(folder, "usr/lib/rustlib", host, "bin");
  mkdirSync(programs, { recursive: true });
  symlinkSync(`../../../llvm-${llvm}/bin/lld`, join(programs, "rust-lld"));
}

/** Builds the standard library: with `embed-bitcode` for link-time optimisation, and `test` for tests in wasm. */
async function addStandardLibrary(folder) {
  const empty = join(folder, "empty");
  mkdirSync(join(empty, "src"), { recursive: true });
  writeFileSync(join(empty, "Cargo.toml"), '[package]\nname = "empty"\nedition = "2021"\n\n[workspace]\n');
  writeFileSync(join(empty, "src/lib.rs"), "");
  const build = [
    "build",
    "--release",
    "--target",
    "wasm32-unknown-unknown",
    "-Z",
    "build-std=std,panic_abort,test",
  ];
  await quiet("building the wasm32 standard library", join(folder, "bin/cargo"), build, {
    cwd: empty,
    env: {
      ...environment(folder),
      RUSTC_BOOTSTRAP: "1",
      RUSTFLAGS: "-Cembed-bitcode=yes",
      CARGO_TARGET_DIR: join(empty, "target"),
    },
    remedy: "see cargo's words above; a registry out of reach is the usual cause. Then run this again.",
  });
  const built = join(empty, "target/wasm32-unknown-unknown/release/deps");
  const library = join(folder, "usr/lib/rustlib/wasm32-unknown-unknown/lib");
  mkdirSync(library, { recursive: true });
  for (const file of readdirSync(built)) {
    if (file.endsWith(".rlib") && !file.startsWith("libempty-"))
      cpSync(join(built, file), join(library, file));
  }
  rmSync(empty, { recursive: true });
}
