// `tollgate/js` exports the same without these two, which only servers need.

export { type HeaderOptions, problemBody, rateLimitHeaders } from "./http/headers.ts";
export { type AddressRanges, inRanges } from "./http/ranges.ts";
export { Ledger, type LedgerReservation, type SavedLedger } from "./limiter/ledger.ts";
export * from "./without-wasm.ts";
