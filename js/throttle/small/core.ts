import { ReadPolicies } from "../../policy/policies.ts";
import { KeyStates } from "../../wasm/one-key.ts";
import type { ThrottleCore } from "../fetch-throttle.ts";
import { KeyLimits } from "./key-limits.ts";

/** The small core. */
export const smallCore: ThrottleCore = {
  limitsOf: (policies, clock) => new KeyLimits(policies, clock),
  stepOf: (policies, { keyStep }) => keyStep(new ReadPolicies(policies), KeyStates),
};
