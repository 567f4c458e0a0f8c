import { rateLimit } from "tollgate/fetch";

const policy = { name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" };

// Bun, Deno, Workers and Node's servers for fetch handlers provide the client's address next to the request.
export default {
  fetch: rateLimit({ policy }, () => new Response("Hello\n")),
};
