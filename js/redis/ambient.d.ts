/** The parts of Node that are used here. The package does not depend on the types of Node. */
declare module "node:crypto" {
  export function createHash(algorithm: "sha1"): {
    update(text: string): { digest(encoding: "hex"): string };
  };
}

declare function setImmediate(work: () => void): unknown;

declare const Buffer: {
  from(bytes: Uint8Array | string, encoding?: "latin1"): { toString(encoding: "latin1"): string };
};
