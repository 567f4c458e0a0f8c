import { buildSchema, graphql, parse, visit } from "graphql";
import { rateLimit } from "tollgate/fetch";

const schema = buildSchema(
  "type Query { users(first: Int!): [User] } type User { name: String friends(first: Int!): [User] }",
);
const friends = ({ first }) => Array.from({ length: first }, () => ({ name: "Ann", friends }));

/** Returns how many fields a query asks for: those inside a list as often as its argument `first` says. */
function complexityOf(query, variables = {}) {
  const factors = [1];
  let complexity = 0;
  const numberOf = (value) => Number(value.kind === "Variable" ? variables[value.name.value] : value.value);
  visit(parse(query), {
    Field: {
      enter({ arguments: given = [] }) {
        const first = given.find(({ name }) => name.value === "first");
        const factor = first ? numberOf(first.value) : 1;
        if (!(factor >= 0)) throw new TypeError("first is a number, or a variable that is given");
        complexity += factors.at(-1);
        factors.push(factors.at(-1) * Math.max(factor, 1));
      },
      leave() {
        factors.pop();
      },
    },
    FragmentDefinition() {
      throw new TypeError("fragments are not accepted; write their fields out");
    },
  });
  return Math.min(complexity, 1_000_000);
}

const policy = { unit: "fields", algorithm: "token_bucket", capacity: 1_000, refillRate: 50 };
const key = (request) => request.headers.get("Authorization") ?? "nobody";
const cost = async (request) => {
  const { query, variables } = await request.clone().json();
  try {
    return complexityOf(query, variables);
  } catch {
    return 1; // The handler rejects it.
  }
};

export const POST = rateLimit({ policy, key, cost }, async (request) => {
  const { query, variables } = await request.json();
  try {
    complexityOf(query, variables);
  } catch ({ message }) {
    return Response.json({ errors: [{ message }] }, { status: 400 });
  }
  const rootValue = { users: friends };
  return Response.json(await graphql({ schema, source: query, variableValues: variables, rootValue }));
});
