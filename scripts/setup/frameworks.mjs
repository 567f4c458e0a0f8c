import { fromNpm } from "./from-npm.mjs";

/** The step of the frameworks whose recipes are tested: what runs requests in each, without its build tools. */
export const frameworks = fromNpm({
  id: "frameworks",
  name: "Frameworks",
  what: "60 MB, a few seconds",
  packages: {
    "react-router": "8.5.1",
    react: "19.3.1",
    "react-dom": "19.3.1",
    elysia: "1.4.30",
    "@trpc/server": "11.25.2",
    graphql: "17.1.0",
  },
  result: (modules) => ({ modules }),
});
