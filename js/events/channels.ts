import type { DecisionMessage, ErrorMessage } from "./messages.ts";

/** A channel of Node's `diagnostics_channel`. */
interface Channel<Message> {
  readonly hasSubscribers: boolean;
  publish(message: Message): void;
  subscribe(subscriber: (message: Message) => void): void;
  unsubscribe(subscriber: (message: Message) => void): boolean;
}

interface Platform {
  readonly EdgeRuntime?: string;
  readonly process?: {
    getBuiltinModule?(name: string): { channel<Message>(name: string): Channel<Message> } | undefined;
  };
}

const { EdgeRuntime, process } = globalThis as Platform;

/**
 * Not an import: only Node and compatible runtimes have the module, and bundles for others must not import it. The edge
 * runtime of Next has a function of that name, which throws.
 */
const module =
  EdgeRuntime === undefined ? process?.getBuiltinModule?.("node:diagnostics_channel") : undefined;

/** Returns a channel; `undefined` where there are none. */
export const channel = <Message>(name: string): Channel<Message> | undefined => module?.channel(name);

/** The channel of decisions; `undefined` where there are no channels. */
export const decisions: Channel<DecisionMessage> | undefined = module?.channel("tollgate:decision");

/** The channel of errors; `undefined` where there are no channels. */
export const errors: Channel<ErrorMessage> | undefined = module?.channel("tollgate:error");
