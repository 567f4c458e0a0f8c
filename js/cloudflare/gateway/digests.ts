/** The most digests, as many as the keys that an isolate knows. */
const most = 10_000;

/** A cache of the digests of logged keys: a flood of denials is mostly about the same keys. */
export class Digests {
  #secret = "";
  #known = new Map<string, string>();

  /** Returns the digest of a key, from the cache or by `make`. */
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
