import { subscribe, unsubscribe } from "node:diagnostics_channel";

/** Collects what a channel publishes until the test ends. */
export function heard(t, channel = "tollgate:decision") {
  const messages = [];
  const listener = (message) => messages.push(message);
  subscribe(channel, listener);
  t.after(() => unsubscribe(channel, listener));
  return messages;
}
