import { type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { type AST, getStaticTOMLValue, parseTOML } from "toml-eslint-parser";
import { CommandError, isTooDeep, tooDeep } from "./errors.ts";
import { textOf } from "./files.ts";

/** A table of a configuration. */
export type ConfigTable = Readonly<Record<string, unknown>>;

/** Returns whether a value is a table. */
export const isTable = (value: unknown): value is ConfigTable =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the tables in a list; none if the value is not a list. */
export const tables = (list: unknown): readonly ConfigTable[] =>
  Array.isArray(list) ? list.filter(isTable) : [];

/** A parsed configuration: its value, and the lines of its parts. */
export interface ConfigFile {
  readonly path: string;
  readonly value: ConfigTable;
  /** Returns the line of a field; if the file does not have it, the line of the table that it belongs to. */
  lineOf(field: string): number;
}

/** The error for a configuration that cannot be read, with its line. */
export class UnreadableConfig extends CommandError {
  readonly line: number;
  readonly problem: string;

  constructor(path: string, line: number, problem: string) {
    super(`${path}:${line}: ${problem}`);
    this.line = line;
    this.problem = problem;
  }
}

/** Reads a `wrangler.toml`, `wrangler.json` or `wrangler.jsonc`. */
export function readConfigFile(path: string): ConfigFile {
  const text = textOf(path);
  const read = /\.jsonc?$/.test(path) ? readJson : readToml;
  const [value, lines] = withinStack(path, () => read(path, text));
  return { path, value, lineOf: (field) => lineOf(field, lines) };
}

/** Runs a parser, whose calls are as deep as the tables of a file. */
function withinStack<Result>(path: string, parse: () => Result): Result {
  try {
    return parse();
  } catch (error) {
    if (!isTooDeep(error)) throw error;
    throw new UnreadableConfig(path, 1, tooDeep);
  }
}

/** The lines of fields by their names: `vars.TOLLGATE.rules[0].path`. */
type Lines = Map<string, number>;

/** Returns the full name of a field of a table, or of an element of an array. */
const within = (field: string, key: string | number): string => {
  if (typeof key === "number") return `${field}[${key}]`;
  return field === "" ? key : `${field}.${key}`;
};

function lineOf(field: string, lines: Lines): number {
  for (
    let name = field;
    name !== "";
    name = name.slice(0, Math.max(name.lastIndexOf("."), name.lastIndexOf("["), 0))
  ) {
    const line = lines.get(name);
    if (line !== undefined) return line;
  }
  return 1;
}

function readToml(path: string, text: string): [ConfigTable, Lines] {
  const program = parsedToml(path, text);
  const lines: Lines = new Map();
  for (const node of program.body[0].body) {
    if (node.type === "TOMLKeyValue") addTomlLines(node, "", lines);
    else {
      let field = "";
      for (const key of node.resolvedKey) {
        field = within(field, key);
        if (!lines.has(field)) lines.set(field, node.loc.start.line);
      }
      for (const each of node.body) addTomlLines(each, field, lines);
    }
  }
  return [getStaticTOMLValue(program) as ConfigTable, lines];
}

function parsedToml(path: string, text: string): AST.TOMLProgram {
  try {
    return parseTOML(text);
  } catch (error) {
    if (!(error instanceof SyntaxError) || !("lineNumber" in error)) throw error;
    throw new UnreadableConfig(path, error.lineNumber as number, error.message);
  }
}

function addTomlLines({ key, value, loc }: AST.TOMLKeyValue, parent: string, lines: Lines): void {
  let field = parent;
  for (const each of key.keys) {
    field = within(field, each.type === "TOMLBare" ? each.name : each.value);
    lines.set(field, loc.start.line);
  }
  addTomlValueLines(value, field, lines);
}

function addTomlValueLines(value: AST.TOMLContentNode, field: string, lines: Lines): void {
  if (value.type === "TOMLInlineTable") for (const each of value.body) addTomlLines(each, field, lines);
  if (value.type !== "TOMLArray") return;
  for (const [at, element] of value.elements.entries()) {
    const name = within(field, at);
    lines.set(name, element.loc.start.line);
    addTomlValueLines(element, name, lines);
  }
}

function readJson(path: string, text: string): [ConfigTable, Lines] {
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true });
  const lineAt = (offset: number) => text.slice(0, offset).split("\n").length;
  const [error] = errors;
  if (error !== undefined || tree?.type !== "object")
    throw new UnreadableConfig(
      path,
      lineAt(error?.offset ?? 0),
      error === undefined ? "it is not an object" : inWords(printParseErrorCode(error.error)),
    );
  const lines: Lines = new Map();
  return [jsonValue(tree, "", lines, lineAt) as ConfigTable, lines];
}

/** Returns an error code in words: `CommaExpected` is `comma expected`. */
const inWords = (code: string) => code.replace(/\B[A-Z]/g, " $&").toLowerCase();

function jsonValue(node: Node, field: string, lines: Lines, lineAt: (offset: number) => number): unknown {
  const { type, children = [] } = node;
  if (type === "object")
    return Object.fromEntries(
      children.map(({ children: [key, value] = [], offset }) => {
        const name = within(field, String(key?.value));
        lines.set(name, lineAt(offset));
        return [key?.value, value === undefined ? null : jsonValue(value, name, lines, lineAt)];
      }),
    );
  if (type !== "array") return node.value;
  return children.map((element, at) => {
    const name = within(field, at);
    lines.set(name, lineAt(element.offset));
    return jsonValue(element, name, lines, lineAt);
  });
}
