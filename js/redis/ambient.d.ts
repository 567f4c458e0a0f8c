/** What is used of Node, whose types the package does not ask for. */
declare module "node:crypto" {
  export function createHash(algorithm: "sha1"): {
    update(text: string): { digest(encoding: "hex"): string };
  };
}

declare function setImmediate(work: () => void): unknown;

declare const Buffer: {
  from(bytes: Uint8Array | string, encoding?: "latin1"): { toString(encoding: "latin1"): string };
};
