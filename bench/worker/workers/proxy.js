import { decide, denial } from "./decide.js";

/** A Worker in front of an upstream. */
export default {
  async fetch(request, env) {
    const { decision, headers } = await decide(request, env);
    if (!decision.allowed) return denial(headers);
    const response = await env.UPSTREAM.fetch(request);
    const answer = new Response(response.body, response);
    for (const [name, value] of Object.entries(headers)) answer.headers.set(name, value);
    answer.headers.append("Access-Control-Expose-Headers", Object.keys(headers).join(", "));
    return answer;
  },
};
