import { demoHit } from "./demo.ts";

export { RateLimiterObject } from "./object.ts";

export default {
  fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/demo/hit") return demoHit(request, env);
    return new Response("Not found\n", { status: 404 });
  },
} satisfies ExportedHandler<Env>;
