import type { Decision, Key } from "../types.ts";
import type { DecisionMessage, ErrorMessage } from "./types.ts";

interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

interface Platform {
  readonly process?: {
    getBuiltinModule?(name: string): { channel(name: string): Channel } | undefined;
  };
}

/** Not an import: only Node and compatible runtimes have the module, and bundles for others must not import it. */
const module = (globalThis as Platform).process?.getBuiltinModule?.("node:diagnostics_channel");

const decisions = module?.channel("tollgate:decision");
const errors = module?.channel("tollgate:error");

/** Publishes a decision, if the channel has subscribers. */
export function publishDecision(adapter: string, key: Key, decision: Decision, request: unknown): void {
  if (decisions?.hasSubscribers)
    decisions.publish({ adapter, key, decision, request } satisfies DecisionMessage);
}

/** Publishes an error, if the channel has subscribers. Returns whether it has. */
export function publishError(message: ErrorMessage): boolean {
  if (!errors?.hasSubscribers) return false;
  errors.publish(message);
  return true;
}
