// The types of the adapters and stores, for each framework's own requests. Only compiled.

import type { FastifyRateLimitStoreCtor } from "@fastify/rate-limit";
import { type CanActivate, HttpException } from "@nestjs/common";
import type { ThrottlerStorage } from "@nestjs/throttler";
import express from "express";
import type { Store } from "express-rate-limit";
import Fastify from "fastify";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import Koa from "koa";
import { type Decision, inRanges, ipKey, RateLimiter } from "tollgate";
import { RemoteLimiter } from "tollgate/client";
import { type DecisionMessage, rateLimit as forExpress, type GuardLimiter } from "tollgate/express";
import { rateLimit as forFastify } from "tollgate/fastify";
import { rateLimit as forFetch } from "tollgate/fetch";
import { rateLimit as forHono } from "tollgate/hono";
import { rateLimit as forKoa } from "tollgate/koa";
import { RateLimit, type RateLimitException, RateLimitGuard } from "tollgate/nest";
import { RedisLimiter } from "tollgate/redis";
import { ExpressStore, FastifyStore, type HitLimiter, HonoStore, NestStorage } from "tollgate/stores";

const policy = { algorithm: "sliding_window", limit: 100, scale: "1m" } as const;
const limiter = new RateLimiter(policy);
const remote = new RemoteLimiter({ url: "https://limits.example.com/_tollgate", token: "a", policy: "api" });

const redis = new RedisLimiter(policy, { client: { send: async () => "" } });

const asGuardLimiter: GuardLimiter[] = [limiter, remote, redis];
const asHitLimiter: HitLimiter[] = [limiter, remote, redis];
const message = ({ decision, key }: DecisionMessage): [Decision, string | number | bigint] => [decision, key];
void [asGuardLimiter, asHitLimiter, message];

const app = express();
app.use(forExpress({ policy }));
app.use(forExpress({ limiter, key: (request) => ipKey(request.ip ?? "0.0.0.0", { ipv6Prefix: 56 }) }));
app.post(
  "/login",
  forExpress({
    limiter: remote,
    policy,
    key: async (request) => `login:${request.body.email}`,
    cost: (request) => request.ips.length,
    charge: "failures",
    headers: "legacy",
    fallback: policy,
    onDenied: (decision, request, response, next) =>
      request.path === "/" ? next() : response.status(429).json({ wait: decision.retryAfter }),
    onError: (error, request) => (error instanceof Error && request.secure ? "deny" : "allow"),
  }),
);
app.use(
  forExpress({
    policy,
    charge: (response) => (response.statusCode === 404 ? 5 : 1),
    skip: inRanges(["::1"]),
  }),
  forExpress({ policy, skip: (request) => request.path === "/health" }),
);
// @ts-expect-error: no cost.
app.use(forExpress({ policy, charge: () => "5" }));
// @ts-expect-error: a policy needs a scale.
app.use(forExpress({ policy: { algorithm: "sliding_window", limit: 100 } }));
// @ts-expect-error: an option of another rate limiter.
app.use(forExpress({ policy, windowMs: 60_000 }));
// @ts-expect-error: no such word.
app.use(forExpress({ policy, charge: "errors" }));

const fastify = Fastify();
fastify.addHook("onRequest", forFastify({ policy }));
fastify.addHook("preHandler", forFastify({ policy, key: ({ ip, body }) => `${ip} ${body}` }));
fastify.register(forFastify, { policy, charge: (reply) => (reply.statusCode === 404 ? 5 : 1) });
fastify.get(
  "/",
  { onRequest: forFastify({ policy }), preHandler: [forFastify({ policy })] },
  async () => "Hello",
);
fastify.get("/deny", {
  onRequest: forFastify({
    policy,
    onDenied: ({ retryAfter }, _request, reply) => reply.code(429).send({ retryAfter }),
  }),
  handler: async () => "Hello",
});
fastify.register(forFastify, { policy, hook: "preHandler", key: ({ ip, body }) => `${ip} ${body}` });
fastify.register(forFastify, { limiter, global: false });
fastify.register(forFastify({ policy }));
fastify.register(import("tollgate/fastify"), { policy });
fastify.get("/decision", async ({ rateLimit }) => ({ left: rateLimit?.remaining }));
// @ts-expect-error: an option of another rate limiter.
fastify.register(forFastify, { policy, timeWindow: "1 minute" });
// @ts-expect-error: no such hook.
fastify.register(forFastify, { policy, hook: "onSend" });
const fastify2 = Fastify({ http2: true });
fastify2.addHook("onRequest", forFastify({ policy }));

const hono = new Hono<{ Variables: { user: string } }>();
hono.use(forHono({ policy, charge: ({ status }) => ({ api: status === 404 ? 5 : 1 }) }));
hono.use("/v1/*", forHono<{ Variables: { user: string } }>({ policy, key: (c) => c.get("user") }));
hono.get("/", forHono({ policy, onDenied: ({ retryAfter }, c) => c.json({ retryAfter }, 429) }), (c) =>
  c.text("Hello"),
);

const koa = new Koa();
koa.use(forKoa({ policy, charge: ({ statusCode }) => (statusCode === 404 ? 5 : 1) }));
koa.use(
  forKoa({
    policy,
    key: (ctx) => ctx.ip,
    onDenied: (decision, ctx) => ctx.throw(429, String(decision.retryAfter)),
  }),
);

const limited: (request: Request) => Promise<Response | undefined> = forFetch({ policy });
const handler: (request: Request, env: { secret: string }) => Promise<Response> = forFetch(
  { policy, key: (request) => request.headers.get("Authorization") ?? "nobody" },
  (_request, env: { secret: string }) => new Response(env.secret),
);
void [limited, handler];

const guard: CanActivate = new RateLimitGuard({
  policy,
  key: ({ user }) => user.id,
  skip: ({ ip }) => ip === "::1",
});
const decorator: MethodDecorator & ClassDecorator = RateLimit({
  charge: "failures",
  onDenied: ({ retryAfter }, context) => new HttpException(`${context.getType()} ${retryAfter}`, 429),
});
const retryAfterOf = ({ decision, getStatus }: RateLimitException): [number | undefined, () => number] => [
  decision?.retryAfter,
  getStatus,
];
// @ts-expect-error: only false turns a limit off.
RateLimit(true);
// @ts-expect-error: an option of another rate limiter.
new RateLimitGuard({ policy, ttl: 60_000 });
void [guard, decorator, retryAfterOf];

const store: Store = new ExpressStore(limiter);
const storage: ThrottlerStorage = new NestStorage();
const stores: FastifyRateLimitStoreCtor[] = [
  FastifyStore,
  FastifyStore.over((policy) => new RateLimiter(policy)),
];
rateLimiter({ windowMs: 60_000, limit: 100, keyGenerator: () => "all", store: new HonoStore(limiter) });
void [store, storage, stores];
