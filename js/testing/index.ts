export type { Store } from "../store/index.ts";
export { memoryStore } from "./memory-store.ts";
export { type StoreCase, type StoreCasesOptions, storeCases } from "./store-cases.ts";
