import { policies } from "./policies.js";

/** Asks the object of the client's address under the policy that the path names. */
export async function decide(request, env) {
  const name = new URL(request.url).pathname.slice(1);
  const policy = policies[name];
  const key = request.headers.get("CF-Connecting-IP");
  const decision = await env.LIMITERS.getByName(`${name}:${key}`).hit(policy);
  return { decision, headers: headers(name, policy, decision) };
}

/** What a client is told, by the IETF's draft. */
function headers(name, { capacity, refillRate, per }, { allowed, remaining, retryAfter, moreAfter }) {
  const told = {
    "RateLimit-Policy": `"${name}";q=${capacity};w=${Math.ceil((capacity * per) / refillRate / 1_000)}`,
    RateLimit: `"${name}";r=${remaining};t=${Math.ceil(moreAfter / 1_000)}`,
  };
  if (!allowed) told["Retry-After"] = String(Math.ceil(retryAfter / 1_000));
  return told;
}

export const denial = (headers) =>
  Response.json(
    {
      type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
      title: "Request cannot be satisfied as assigned quota has been exceeded",
      status: 429,
    },
    {
      status: 429,
      headers: { ...headers, "Content-Type": "application/problem+json", "Cache-Control": "no-store" },
    },
  );
