import { decide, denial } from "./decide.js";

/** A Worker that answers by itself. */
export default {
  async fetch(request, env) {
    const { decision, headers } = await decide(request, env);
    return decision.allowed ? new Response("hello\n", { headers }) : denial(headers);
  },
};
