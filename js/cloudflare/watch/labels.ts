/** The parts of a valid configuration that the page shows. */
interface Written {
  readonly policies?: Readonly<Record<string, { readonly algorithm: string }>>;
  readonly rules?: unknown;
}

interface WrittenRule {
  readonly method?: string | readonly string[];
  readonly path: string;
}

/** Returns what each rule of a configuration is called: its methods and its path pattern. */
export function ruleLabels(json: string): readonly string[] {
  const { rules = [] } = JSON.parse(json) as Written;
  return ([rules].flat() as WrittenRule[]).map(({ method = [], path }) =>
    [[method].flat().join(","), path].filter((text) => text !== "").join(" "),
  );
}

/** Returns the names of the policies of a configuration. */
export const policyNamesIn = (json: string): readonly string[] =>
  Object.keys((JSON.parse(json) as Written).policies ?? {});

/** Returns the names of the policies that are bans. */
export const banNamesIn = (json: string): readonly string[] =>
  Object.entries((JSON.parse(json) as Written).policies ?? {}).flatMap(([name, { algorithm }]) =>
    algorithm === "ban" ? [name] : [],
  );
