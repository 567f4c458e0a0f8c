import { build } from "./build.mjs";
import { isMain } from "./lib/main.mjs";
import { inProject, typedocProgram } from "./lib/paths.mjs";
import { show } from "./lib/run.mjs";
import { say } from "./lib/say.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

/** The crate's reference in target/doc. A warning fails it: a broken link, or an item without a word. */
export const rustdoc = () =>
  show("cargo", ["doc", "--no-deps", "--features", "system-clock,cloudflare"], {
    env: { ...process.env, RUSTDOCFLAGS: "-D warnings" },
  });

/** The package's reference in build/reference, from the types that are published. A warning fails it. */
export const typedoc = () =>
  show(process.execPath, [typedocProgram, "--options", inProject("docs/reference/typedoc.json")]);

if (isMain(import.meta))
  await afterSetUp(toBuild, async (found) => {
    await build(found);
    await rustdoc();
    await typedoc();
    say("\ntarget/doc/tollgate/index.html and build/reference/index.html");
  });
