/** The parts of Node that are used here. The package does not depend on the types of Node. */
declare function setImmediate(work: () => void): unknown;

declare const process: { nextTick(work: () => void): void };

declare const Buffer: {
  from(bytes: Uint8Array | string, encoding?: "latin1"): { toString(encoding: "latin1"): string };
};
