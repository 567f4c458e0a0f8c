import { fromNpm } from "./from-npm.mjs";

/** The step of Next and of Vercel's edge runtime, in which the packed package is tested. */
export const next = fromNpm({
  id: "next",
  name: "Next",
  what: "340 MB, a quarter of a minute",
  packages: { next: "16.4.6", react: "19.3.1", "react-dom": "19.3.1", "edge-runtime": "4.0.1" },
  result: (modules) => ({ modules }),
});
