import * as node from "node:test";

const begun = [];

/** The hook of Node. */
export const before = (work) =>
  node.before(() => {
    const working = work();
    begun.push(working);
    return working;
  });

/**
 * The hook of Node, once the work of `before` has ended: when no test has the name that was asked for, Node calls `after` in
 * the middle of it, and servers that are started later would keep the process alive.
 */
export const after = (work) =>
  node.after(async () => {
    await Promise.allSettled(begun);
    await work();
  });
