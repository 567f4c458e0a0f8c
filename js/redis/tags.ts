const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** How many tags one name of a process has: four digits in base 36. */
const tagsOfName = 36 ** 4;

/** The tags of a limiter's calls: a random name of 30 bits for the process, then a number that increases. */
export class Tags {
  #process = processName();
  #number = 0;

  next(): string {
    if (++this.#number === tagsOfName) {
      this.#process = processName();
      this.#number = 1;
    }
    return this.#process + this.#number.toString(36).padStart(4, "0");
  }
}

function processName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(5));
  return Array.from(bytes, (byte) => alphabet[byte & 63]).join("");
}
