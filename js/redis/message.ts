import type { Call } from "./call.ts";

/** The most keys in one message: more gain nothing, and delay what other processes send. */
export const maxKeys = 32;

/** One call of the script for several keys. */
export class Message {
  readonly calls: readonly Call[];
  /** The tag of its entries. */
  readonly tag: string;
  /** When it was sent, by the local clock. */
  readonly sentAt: number;
  /** Whether it was sent with the text of the script. */
  isByText = false;

  constructor(calls: readonly Call[], tag: string, sentAt: number) {
    this.calls = calls;
    this.tag = tag;
    this.sentAt = sentAt;
  }

  get keys(): string[] {
    return this.calls.map(({ log }) => log.name);
  }

  /** Returns the arguments of the script, which `log.lua` documents. `deadline` is by Redis's clock. */
  args(deadline: number, policies: string, ttl: number): string[] {
    const args = [`${deadline}`, this.tag, policies, `${ttl}`];
    for (const call of this.calls) args.push(call.log.known + call.operations);
    let place = 0;
    for (const { base, ttl } of this.calls) {
      place++;
      if (base !== undefined) args.push(`${place}`, base.kind, base.text);
      if (ttl > 0) args.push(`${place}`, "t", `${ttl}`);
    }
    return args;
  }
}

/** Divides calls among messages. With `bySlot` the keys of a message are surely in the same slot of a Cluster. */
export function divided(calls: readonly Call[], bySlot: boolean): (readonly Call[])[] {
  if (!bySlot && calls.length <= maxKeys) return [calls];
  const messages: Call[][] = [];
  const open = new Map<string, Call[]>();
  for (const call of calls) {
    const slot = bySlot ? hashed(call.log.name) : "";
    let message = open.get(slot);
    if (message === undefined || message.length === maxKeys) {
      message = [];
      open.set(slot, message);
      messages.push(message);
    }
    message.push(call);
  }
  return messages;
}

/** Returns the part of a key that decides its slot. Other parts have the same slot only by chance. */
function hashed(key: string): string {
  const start = key.indexOf("{");
  const end = start < 0 ? -1 : key.indexOf("}", start);
  return end > start + 1 ? key.slice(start + 1, end) : key;
}
