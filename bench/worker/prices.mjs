/**
 * What Cloudflare's paid plan charges past what is included, in US dollars per million, as published in September 2026:
 * https://developers.cloudflare.com/durable-objects/platform/pricing/
 */
export const prices = { objectRequests: 0.15, rowsWritten: 1, rowsRead: 0.001 };
export const pricesAsOf = "September 2026";

/** Setting an alarm is billed as one row written. */
export const price = ({ objectRequests, rowsWritten, rowsRead, alarmsSet }) =>
  objectRequests * prices.objectRequests +
  (rowsWritten + alarmsSet) * prices.rowsWritten +
  rowsRead * prices.rowsRead;
