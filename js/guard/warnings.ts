const given = new Set<string>();

/** Warns on the console, once in a process for each kind of warning. */
export function warnOnce(kind: string, text: string): void {
  if (given.has(kind)) return;
  given.add(kind);
  console.warn(`tollgate: ${text}`);
}
