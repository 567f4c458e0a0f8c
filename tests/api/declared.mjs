import { createRequire } from "node:module";
import { join } from "node:path";
import { typedocProgram } from "../../scripts/lib/paths.mjs";

// The TypeScript of the reference, since the project's own has no API for programs.
const ts = createRequire(typedocProgram)("typescript");

/** The entries that declare limiters. */
const entries = ["index", "client/index", "redis/index", "store/index", "testing/index", "cloudflare/index"];

/**
 * Returns what an editor shows of the classes and of the interfaces of limiters in a package's types: every member with its
 * signatures, inherited ones too, and "undocumented" where no comment says what it does.
 */
export function declaredLimiters(folder) {
  const files = entries.map((entry) => join(folder, "dist/types", `${entry}.d.ts`));
  const program = ts.createProgram(files, {
    strict: true,
    target: ts.ScriptTarget.ESNext,
    skipLibCheck: true,
  });
  const checker = program.getTypeChecker();
  const found = new Map();
  for (const file of files) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file));
    for (const exported of checker.getExportsOfModule(module)) {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
      if (isLimiter(symbol)) found.set(exported.name, symbol);
    }
  }
  return [...found]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, symbol]) => [name, ...membersOf(checker, symbol)].join("\n  "))
    .join("\n\n")
    .concat("\n");
}

const names = /Limiter$|Ledger$|Reservation$|^RemoteKey$|^RateLimiterObject$|^Tollgate$|^RuleTarget$/;

const isLimiter = ({ name, flags }) =>
  names.test(name) && (flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface)) !== 0;

function membersOf(checker, symbol) {
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  return checker
    .getPropertiesOfType(type)
    .filter(
      ({ name, declarations = [] }) =>
        !name.startsWith("#") && !name.startsWith("__#") && declarations.length > 0,
    )
    .flatMap((member) => linesOf(checker, member))
    .sort();
}

function linesOf(checker, member) {
  const own = checker.getTypeOfSymbol(member);
  const name = member.name.startsWith("__@") ? `[Symbol.${member.name.slice(3).split("@")[0]}]` : member.name;
  const documented = ts.displayPartsToString(member.getDocumentationComment(checker)) !== "";
  const about = documented ? "" : " (undocumented)";
  const signatures = own.getCallSignatures();
  const flags = ts.TypeFormatFlags.NoTruncation | ts.TypeFormatFlags.UseAliasDefinedOutsideCurrentScope;
  if (signatures.length === 0) return [`${name}: ${checker.typeToString(own, undefined, flags)}${about}`];
  return signatures.map(
    (signature) => `${name}${checker.signatureToString(signature, undefined, flags)}${about}`,
  );
}
