// After a panic in the wasm, every object goes on in a fresh instance and has lost nothing.

import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { call } from "../../../js/cloudflare/wasm.ts";

const policies = { algorithm: "fix_window", limit: 3, scale: "365d" } as const;

it("gives every object a fresh instance after a panic, with nothing lost", async () => {
  const [first, second] = [env.LIMITERS.getByName("panic:1"), env.LIMITERS.getByName("panic:2")];
  await first.hit(policies, 2);
  await second.hit(policies, 1);

  const gateway = call((rust) => new rust.Gateway("{}"));
  expect(gateway.settings()).toMatchObject({ prefix: "/_tollgate" });

  expect(() => call((rust) => rust.crash())).toThrow(WebAssembly.RuntimeError);

  expect(await first.hit(policies, 1)).toMatchObject({ allowed: true, count: 3 });
  // What the old instance made is gone with it.
  expect(() => gateway.settings()).toThrow(/stale/);
  expect(await second.hit(policies, 1)).toMatchObject({ allowed: true, count: 2 });
  expect(await first.hit(policies, 1)).toMatchObject({ allowed: false });
});
