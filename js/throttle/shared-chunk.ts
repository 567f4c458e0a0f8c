// The code of shared budgets, a file of its own: a page loads it when a throttle has the option `shared`.

export { SharedBudget } from "./shared.ts";
export { keyStep } from "./small/key-step.ts";
