import { parseAst } from "vite";

/** Where the helpers of a checked program are, seen from it. */
const helpers = 'import { allMet, more, says, saysThrown } from "./says.js"; ';
const end = 'return new Response("done");';

/** A block as a module of its own: its lines have the numbers that they have in the document. */
export const moduleOf = ({ text, line, given = "" }) =>
  `${"\n".repeat(line - 2)}${given.replaceAll("\n", " ")}\n${text}`;

function parse(code, { language, place }) {
  try {
    return parseAst(code, { lang: "ts" }).body;
  } catch (cause) {
    throw new Error(`${place}: this is no ${language}`, { cause });
  }
}

/** The statements of a Worker's snippet inside a Worker that makes them; a whole Worker stays as it is. */
export function workerOf(block) {
  const code = moduleOf(block);
  const body = parse(code, block);
  if (body.some(({ type }) => type === "ExportDefaultDeclaration")) return code;
  const own = body.filter(({ type }) => /^(Import|Export)/.test(type));
  let inside = code;
  for (const { start, end } of own)
    inside = inside.slice(0, start) + code.slice(start, end).replaceAll(/[^\n]/g, " ") + inside.slice(end);
  const outside = own.map(({ start, end }) => code.slice(start, end).replaceAll("\n", " ")).join(" ");
  const head = "export default { async fetch(request: Request, env: Env, context: ExecutionContext) {";
  return `${outside} ${head} ${inside}\n${end} } };\n`;
}

/**
 * The same program, failing where a value is not what the comment after its statement says.
 *
 *     limiter.hit("user:42"); // => { allowed: true, … }
 */
export function checkedBy(code, block) {
  const statements = [...statementsIn(parse(code, block))];
  const claims = claimsIn(code, block);
  let checked = code;
  for (const claim of claims.toReversed()) {
    const statement = statements.find(
      ({ end }) => end <= claim.at && /^[\s;]*$/.test(code.slice(end, claim.at)),
    );
    if (!statement) throw new Error(`${claim.place}: the comment says the value of no statement`);
    const { start, end } = statement;
    checked = checked.slice(0, start) + withClaim(code, statement, claim) + checked.slice(end);
  }
  const finish = `allMet(${JSON.stringify(claims.map(({ place }) => place))});`;
  if (block.run === "worker") return helpers + checked.replace(end, `${finish} ${end}`);
  return `${helpers} process.on("exit", (code) => { if (code === 0) ${finish} }); ${checked}`;
}

/** Innermost last, so that of two that end at one place the outer one is found first. */
function* statementsIn(node) {
  if (node === null || typeof node !== "object") return;
  if (node.type === "ExpressionStatement" || node.type === "VariableDeclaration") yield node;
  for (const child of Object.values(node)) yield* statementsIn(child);
}

function withClaim(code, statement, { value, thrown, place }) {
  const of = ({ start, end }) => code.slice(start, end);
  const where = JSON.stringify(place);
  if (thrown)
    return `await saysThrown(async () => { ${of(statement)} }, ${JSON.stringify(thrown)}, ${where});`;
  if (statement.type === "VariableDeclaration")
    return `${of(statement)}; says((${of(statement.declarations[0].id)}), ${value}, ${where});`;
  const { expression } = statement;
  const isLog = expression.type === "CallExpression" && of(expression.callee) === "console.log";
  return `says(${of(isLog ? expression.arguments[0] : expression)}, ${value}, ${where});`;
}

function claimsIn(code, { document }) {
  const claims = [];
  for (const match of code.matchAll(/\/\/ (=> )?(.*)((?:\n *\/\/ (?!=>).*)*)/g)) {
    const [, mark, first, rest] = match;
    const place = `${document}:${code.slice(0, match.index).split("\n").length}`;
    if (!mark && /^[{[]/.test(first))
      throw new Error(`${place}: a comment with a value starts with "// => "`);
    if (!mark) continue;
    const [, thrown] = first.match(/^throws (.*)$/) ?? [];
    const value = thrown
      ? undefined
      : openValue(isWhole(first) ? first : first + rest.replaceAll(/\n *\/\//g, ""));
    claims.push({ at: match.index, place, thrown, value });
  }
  return claims;
}

/** A value whose brackets are not closed yet goes on in the next line's comment. */
const isWhole = (text) => text.split(/[{[]/).length === text.split(/[}\]]/).length;

/** The value as an expression, with what … leaves open. */
function openValue(text) {
  const open = [];
  let previous = "";
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\S/g, (token) => {
    const entry = open.at(-1) === "{" && /^[{,]$/.test(previous);
    if (token === "{" || token === "[") open.push(token);
    if (token === "}" || token === "]") open.pop();
    previous = token;
    if (token !== "…") return token;
    return entry ? "[more]: true" : "more";
  });
}
