// `tollgate/js` exports the same without these two, which only servers need.

export type { ErrorMessage } from "./events/messages.ts";
export { type HeaderOptions, problemBody, rateLimitHeaders } from "./http/headers.ts";
export { type AddressRanges, inRanges } from "./http/ranges.ts";
export { Ledger, type LedgerReservation } from "./limiter/ledger.ts";
export type { SavedLedger } from "./limiter/loaded-key.ts";
export * from "./without-wasm.ts";
