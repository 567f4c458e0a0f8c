/** As many as there are denials that an isolate remembers. */
const most = 10_000;

/** Digests of the keys that were logged last: a flood of denials is mostly about the same ones. */
export class Digests {
  #secret = "";
  #known = new Map<string, string>();

  /** The digest of a key, made only if it is not known. */
  of(key: string, secret: string, make: () => string): string {
    if (secret !== this.#secret || this.#known.size >= most) this.#known.clear();
    this.#secret = secret;
    let digest = this.#known.get(key);
    if (digest === undefined) {
      digest = make();
      this.#known.set(key, digest);
    }
    return digest;
  }
}
