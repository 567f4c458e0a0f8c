import { Rebuilt } from "./wasm.ts";

/** Ten at once, then one a second. */
const policies = JSON.stringify([
  { name: "demo", algorithm: "token_bucket", capacity: 10, refillRate: 1, per: "1s" },
]);

const responder = new Rebuilt((rust) => new rust.Responder(policies));

/** The open route: limited by IP, answers the decision with the headers a client reads. */
export async function demoHit(request: Request, env: Env): Promise<Response> {
  const address = request.headers.get("CF-Connecting-IP") ?? "unknown";
  const decision = await env.LIMITERS.getByName(`demo:${address}`).hit(policies, 1);
  const parts = responder.call((rust) => rust.parts(JSON.stringify(decision)));
  const { status, headers, problem } = JSON.parse(parts);
  const body = { ...JSON.parse(problem), decision };
  return Response.json(body, { status, headers: [["Cache-Control", "no-store"], ...headers] });
}
