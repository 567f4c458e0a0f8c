import { initTRPC, TRPCError } from "@trpc/server";
import { RateLimiter, rateLimitHeaders } from "tollgate";

const policy = { algorithm: "token_bucket", capacity: 10, refillRate: 1 };
const limiter = new RateLimiter(policy);

const t = initTRPC.create({ defaultMeta: { cost: 1 } });

const limited = t.procedure.use(async ({ ctx, meta, next }) => {
  const decision = await limiter.hit(ctx.user, meta.cost);
  for (const [name, value] of Object.entries(rateLimitHeaders(decision, policy)))
    ctx.resHeaders.set(name, value);
  if (!decision.allowed)
    throw new TRPCError({ code: "TOO_MANY_REQUESTS", message: decision.violated.join() });
  return next();
});

export const router = t.router({
  hello: limited.query(() => "Hello"),
  report: limited.meta({ cost: 8 }).query(() => "A long report"),
});
