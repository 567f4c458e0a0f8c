/** Returns whether the platform knows that there is no network. Node does not say. */
export const isOffline = (): boolean => globalThis.navigator?.onLine === false;

/** Calls a function when the platform is online again. Returns a function that stops that. */
export function whenOnline(call: () => void): () => void {
  globalThis.addEventListener?.("online", call);
  return () => globalThis.removeEventListener?.("online", call);
}
