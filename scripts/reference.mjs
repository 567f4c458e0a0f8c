import { build } from "./build.mjs";
import { isMain } from "./lib/main.mjs";
import { inProject, typedocProgram } from "./lib/paths.mjs";
import { show } from "./lib/run.mjs";
import { say } from "./lib/say.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

/** Writes the crate's reference to target/doc. A warning fails it: a broken link, or an item without documentation. */
export const rustdoc = () =>
  show("cargo", ["doc", "--no-deps", "--features", "cloudflare,system-clock,tower"], {
    env: { ...process.env, RUSTDOCFLAGS: "-D warnings" },
  });

/** Writes the package's reference to build/reference, from the published types. A warning fails it. */
export const typedoc = () =>
  show(process.execPath, [typedocProgram, "--options", inProject("docs/reference/typedoc.json")]);

if (isMain(import.meta))
  await afterSetUp(toBuild, async (found) => {
    await build(found);
    await rustdoc();
    await typedoc();
    say("\ntarget/doc/tollgate/index.html and build/reference/index.html");
  });
