import { WorkerEntrypoint } from "cloudflare:workers";

// The gateway: it counts every request by the rules in wrangler.toml, and forwards the allowed ones.
export { default, RateLimiterObject, Tollgate } from "tollgate/cloudflare";

/** The origin that the gateway protects. Replace it with your own code, or set the URL of your origin in wrangler.toml. */
export class Origin extends WorkerEntrypoint {
  fetch(request) {
    return new Response(`${request.method} ${new URL(request.url).pathname} came through\n`);
  }
}
