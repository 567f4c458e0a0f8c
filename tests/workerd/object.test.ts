import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it } from "vitest";

const policies = JSON.stringify({ algorithm: "fix_window", limit: 3, scale: "1d", denied: "free" });
const broken = JSON.stringify({ algorithm: "fix_window", limit: 0, scale: "1d" });

it("throws the core's typed errors, and nothing changes", async () => {
  await runInDurableObject(env.LIMITERS.getByName("mistakes"), (object) => {
    object.hit(policies, 1);
    expect(() => object.hit(broken, 1)).toThrow(expect.objectContaining({ code: "invalid_policy" }));
    expect(() => object.hit("{", 1)).toThrow(expect.objectContaining({ code: "json" }));
    for (const cost of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(() => object.hit(policies, cost)).toThrow(expect.objectContaining({ code: "invalid_cost" }));
    }
    expect(object.hit(policies, 1)).toMatchObject({ allowed: true, count: 2 });
  });
});

it("writes one row for an allowed hit and none for a denied one", async () => {
  await runInDurableObject(env.LIMITERS.getByName("rows"), (object, { storage }) => {
    object.hit(policies, 2);
    const saved = () => storage.sql.exec("SELECT id, record FROM state").toArray();
    expect(saved()).toMatchObject([{ id: 0, record: expect.stringContaining('"states":[[') }]);
    const before = saved();
    expect(object.hit(policies, 2)).toMatchObject({ allowed: false });
    expect(saved()).toEqual(before);
    expect(object.hit(policies, 1)).toMatchObject({ allowed: true });
    expect(saved()).toHaveLength(1);
    expect(saved()).not.toEqual(before);
  });
});
