import { type ConfigTable, tables } from "./config-file.ts";

/** A rule as far as it selects requests. */
interface Selection {
  readonly path: string;
  /** Empty for all methods. */
  readonly methods: readonly string[];
  readonly segments: readonly string[];
  /** True if the path ends with `*`, so that further segments match too. */
  readonly isOpen: boolean;
  readonly caseSensitive: boolean;
}

/** Yields the rules of a valid gateway that no request reaches, since an earlier rule matches all of theirs. */
export function* unreachableRules(table: ConfigTable): Generator<[rule: number, problem: string]> {
  const rules = tables([table["rules"] ?? []].flat()).map((rule) => selection(rule, table["caseSensitive"]));
  for (const [at, rule] of rules.entries()) {
    const earlier = rules.slice(0, at).findIndex((other) => includes(other, rule));
    if (earlier < 0) continue;
    const { path } = rules[earlier] as Selection;
    yield [at, `never applies, because rules[${earlier}] ("${path}") matches the same requests first`];
  }
}

function selection({ path, method, caseSensitive }: ConfigTable, byDefault: unknown): Selection {
  const segments = String(path)
    .split("/")
    .filter((segment) => segment !== "");
  const isOpen = segments.at(-1) === "*";
  return {
    path: String(path),
    methods: [method ?? []].flat().map(String),
    segments: isOpen ? segments.slice(0, -1) : segments,
    isOpen,
    caseSensitive: (caseSensitive ?? byDefault) === true,
  };
}

/** Returns whether a rule matches every request that another one matches. */
const includes = (rule: Selection, other: Selection): boolean =>
  includesMethods(rule.methods, other.methods) && includesPaths(rule, other);

function includesMethods(own: readonly string[], others: readonly string[]): boolean {
  // Only a rule that names OPTIONS matches preflights.
  if (own.length === 0) return !others.includes("OPTIONS");
  const has = (method: string) => own.includes(method) || (method === "HEAD" && own.includes("GET"));
  return others.length > 0 && others.every(has);
}

function includesPaths(rule: Selection, other: Selection): boolean {
  const own = rule.segments;
  const { length } = own;
  const isDeep = other.segments.length === length && (rule.isOpen || !other.isOpen);
  if (!isDeep && !(rule.isOpen && other.segments.length > length)) return false;
  const literals = own.filter((segment) => !segment.startsWith(":"));
  if (literals.length > 0 && rule.caseSensitive && !other.caseSensitive) return false;
  // A literal in another letter case is another rule: the gateway applies both.
  return own.every((segment, at) => segment.startsWith(":") || segment === other.segments[at]);
}
