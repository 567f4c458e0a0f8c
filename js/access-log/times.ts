const months = "JanFebMarAprMayJunJulAugSepOctNovDec";

/** The length of `10/Oct/2026:13:55:36 +0000`. */
export const commonTimeLength = 26;

const isoTime = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?$/i;
const httpDate = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;
const plainNumber = /^\d{1,19}(?:\.\d{1,9})?$/;
const offset = /^([+-])(\d\d):?(\d\d)$/;

/** The units that a time in digits may have, in milliseconds. */
export const timeUnits = { s: 1_000, ms: 1, us: 1e-3, ns: 1e-6 } as const;

/** The options of times without an offset or a unit. */
export interface TimeOptions {
  /** The offset of times without one, such as `"+02:00"`; UTC by default. */
  readonly zone?: string | undefined;
  /** The unit of times in digits; by default the one that makes them dates of this century. */
  readonly unit?: keyof typeof timeUnits | undefined;
}

/** Parses `Z`, `+02:00` or `+0200` into milliseconds; undefined if invalid. */
export function zoneOffset(text: string): number | undefined {
  if (text === "Z" || text === "z") return 0;
  const [, sign, hours, minutes] = offset.exec(text) ?? [];
  if (sign === undefined || Number(hours) > 18 || Number(minutes) > 59) return undefined;
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

/** Parses the times of a log into milliseconds since the epoch. Lines of the same second are parsed once. */
export class Times {
  readonly #zone: number;
  readonly #unit: keyof typeof timeUnits | undefined;
  #text = "";
  #time = Number.NaN;

  constructor({ zone = "Z", unit }: TimeOptions = {}) {
    this.#zone = zoneOffset(zone) ?? 0;
    this.#unit = unit;
  }

  /** Parses `10/Oct/2026:13:55:36 +0000` at a position of a line; NaN if invalid. */
  common(line: string, at: number): number {
    if (this.#text.length === commonTimeLength && line.startsWith(this.#text, at)) return this.#time;
    const text = line.slice(at, at + commonTimeLength);
    this.#text = text;
    this.#time = commonTime(text);
    return this.#time;
  }

  /** Parses the value of a field; NaN if invalid. */
  read(value: unknown): number {
    if (typeof value === "number") return this.#ofNumber(value);
    if (typeof value !== "string") return Number.NaN;
    if (value === this.#text) return this.#time;
    this.#text = value;
    this.#time = this.#ofText(value);
    return this.#time;
  }

  #ofText(text: string): number {
    const [, year, month, day, hour, minute, second, fraction = "", zone] = isoTime.exec(text) ?? [];
    if (year !== undefined) {
      const offset = zone === undefined ? this.#zone : zoneOffset(zone);
      const time = utc(
        Number(year),
        Number(month),
        Number(day),
        Number(hour),
        Number(minute),
        Number(second),
      );
      return time + Math.floor(Number(`0.${fraction}0`) * 1_000) - (offset ?? Number.NaN);
    }
    if (plainNumber.test(text)) return this.#ofNumber(Number(text));
    if (text.length === commonTimeLength) return commonTime(text);
    return httpDate.test(text) ? Date.parse(text) : Number.NaN;
  }

  /** Converts a number: seconds below 1e11, then milliseconds, microseconds and nanoseconds. */
  #ofNumber(value: number): number {
    if (!(value >= 0)) return Number.NaN;
    const unit = this.#unit ?? (value < 1e11 ? "s" : value < 1e14 ? "ms" : value < 1e17 ? "us" : "ns");
    // Half a microsecond is added, since binary fractions and nanoseconds beyond 2^53 are a little off.
    const time = Math.floor(value * timeUnits[unit] + 5e-4);
    return Number.isSafeInteger(time) ? time : Number.NaN;
  }
}

function commonTime(text: string): number {
  const month = months.indexOf(text.slice(3, 6)) / 3 + 1;
  const zone = zoneOffset(text.slice(21));
  const isDelimited =
    text[2] === "/" && text[6] === "/" && text[11] === ":" && text[14] === ":" && text[17] === ":";
  if (!isDelimited || zone === undefined || !Number.isInteger(month)) return Number.NaN;
  const digits = (from: number, to: number) => {
    const part = text.slice(from, to);
    return /^\d+$/.test(part) ? Number(part) : Number.NaN;
  };
  return utc(digits(7, 11), month, digits(0, 2), digits(12, 14), digits(15, 17), digits(18, 20)) - zone;
}

/** Returns a time of UTC; NaN if a part is out of range. A leap second counts as the second after it. */
function utc(year: number, month: number, day: number, hour: number, minute: number, second: number): number {
  const isTime = hour <= 23 && minute <= 59 && second <= 60;
  if (!isTime || !(month >= 1 && month <= 12 && day >= 1 && day <= 31)) return Number.NaN;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
