// Pages of configured origins, and no others, may call the API and read denials.

import { describe, expect, it } from "vitest";
import { someone, token, workerWith } from "../lib.ts";

const policies = { api: { algorithm: "fix_window", limit: 5, scale: "1d" } };
const page = "https://app.example";

const asking = (fetch: ReturnType<typeof workerWith>["fetch"], method: string, Origin: string) =>
  fetch("/_tollgate/v1/hit", {
    method,
    headers: {
      Origin,
      ...(method === "OPTIONS"
        ? {
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
          }
        : { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }),
    },
    ...(method === "POST" ? { body: JSON.stringify({ policy: "api", key: "cors" }) } : {}),
  });

const corsOf = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith("access-control-allow-")));

describe("pages of other origins", () => {
  it("of a configured origin may send requests, and read every response", async () => {
    const { fetch } = workerWith({ policies, origins: [page, "http://localhost:3000"] });
    const preflight = await asking(fetch, "OPTIONS", page);
    expect([preflight.status, await preflight.text()]).toEqual([204, ""]);
    expect(corsOf(preflight)).toEqual({
      "access-control-allow-origin": page,
      "access-control-allow-methods": "POST",
      "access-control-allow-headers": "Authorization, Content-Type",
    });
    const answer = await asking(fetch, "POST", page);
    expect(answer.status).toBe(200);
    expect(corsOf(answer)).toEqual({ "access-control-allow-origin": page });
    expect(answer.headers.get("Vary")).toBe("Origin");
    const unauthorized = await fetch("/_tollgate/v1/hit", { method: "POST", headers: { Origin: page } });
    expect([unauthorized.status, corsOf(unauthorized)["access-control-allow-origin"]]).toEqual([401, page]);
    expect(unauthorized.headers.get("Access-Control-Expose-Headers")).toContain("WWW-Authenticate");
  });

  it.each([
    ["where none is named", {}, page],
    ["where another is named", { origins: page }, "https://app.example.evil.test"],
    ["where another scheme is named", { origins: page }, "http://app.example"],
    ["from a sandbox", { origins: page }, "null"],
  ])("may not read anything %s", async (_, more, origin) => {
    const { fetch } = workerWith({ policies, ...more });
    for (const method of ["OPTIONS", "POST"])
      expect(corsOf(await asking(fetch, method, origin))).not.toHaveProperty("access-control-allow-origin");
  });

  it("of all origins may send requests if the configuration allows all", async () => {
    const { fetch } = workerWith({ policies, origins: "*" });
    expect(corsOf(await asking(fetch, "POST", "https://any.example"))).toEqual({
      "access-control-allow-origin": "https://any.example",
    });
  });
});

describe("a denial", () => {
  const config = (cors?: unknown) => ({
    upstream: "ORIGIN",
    policies: { one: { algorithm: "fix_window", limit: 1, scale: "1h" } },
    rules: [{ path: "/*", policies: "one" }],
    ...(cors === undefined ? {} : { cors }),
  });

  async function denied(cors: unknown, headers: Record<string, string>) {
    const { fetch } = workerWith(config(cors));
    const own = { ...someone(), ...headers };
    await fetch("/", { headers: own });
    const response = await fetch("/", { headers: own });
    expect(response.status).toBe(429);
    return { cors: corsOf(response), vary: response.headers.get("Vary") };
  }

  it("may be read by every page, without credentials", async () => {
    for (const headers of [{}, { Origin: page }])
      expect(await denied(undefined, headers)).toEqual({
        cors: { "access-control-allow-origin": "*" },
        vary: null,
      });
  });

  it("may be read by the configured origins, with credentials if so configured", async () => {
    const origins = [page, "http://localhost:3000"];
    expect(await denied({ origins }, { Origin: page })).toEqual({
      cors: { "access-control-allow-origin": page },
      vary: "Origin",
    });
    expect(await denied({ origins, credentials: true }, { Origin: page })).toEqual({
      cors: { "access-control-allow-origin": page, "access-control-allow-credentials": "true" },
      vary: "Origin",
    });
    for (const Origin of ["https://app.example.evil.test", "null", "http://app.example"])
      expect(await denied({ origins, credentials: true }, { Origin })).toEqual({ cors: {}, vary: "Origin" });
  });

  it("may be read by no page where none is configured", async () => {
    expect(await denied({ origins: [] }, { Origin: page })).toEqual({ cors: {}, vary: null });
  });
});
