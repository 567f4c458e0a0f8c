import { type ConfigTable, isTable } from "./config-file.ts";

/** The fields of a policy that are durations. */
const durations = ["scale", "per"];

/** Yields durations below a second that have no unit: `scale = 60` is 60 milliseconds, and mostly means a minute. */
export function* shortDurations(table: ConfigTable): Generator<[field: string, problem: string]> {
  const policies = isTable(table["policies"]) ? table["policies"] : {};
  for (const [name, policy] of Object.entries(policies))
    for (const field of isTable(policy) ? durations : []) {
      const found = (policy as ConfigTable)[field];
      if (typeof found === "number" && found > 0 && found < 1_000)
        yield [
          `policies.${name}.${field}`,
          `${found} is in milliseconds; write "${found}ms" if that is meant, or "${found}s" for seconds`,
        ];
    }
}
