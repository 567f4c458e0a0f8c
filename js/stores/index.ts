export { ExpressStore } from "./express-store.ts";
export { FastifyStore, type FastifyStoreCallback, type FastifyStoreOptions } from "./fastify-store.ts";
export { type HitInfo, HitStore, type HitStoreInit, type HitStoreOptions } from "./hit-store.ts";
export { HonoStore } from "./hono-store.ts";
export { NestStorage, type NestStorageOptions, type ThrottleRecord } from "./nest-storage.ts";
export type {
  Awaitable,
  HitLimiter,
  LimiterSource,
  StoreNamespace,
  StoreObject,
  WindowAlgorithm,
} from "./types.ts";
