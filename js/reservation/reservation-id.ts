import { invalidField } from "../errors/error.ts";
import type { Key } from "../types.ts";
import { reservationText } from "../wasm/generated.ts";

/** The contents of a reservation's id. */
export interface ReservationId {
  readonly key: Key;
  /** 128 random bits in four numbers. */
  readonly bits: readonly number[];
  /** When the reservation ends, unless it was extended. */
  readonly end: number;
  /** Whether its costs are by policy. */
  readonly isByPolicy: boolean;
}

/** A buffer of random numbers, since each draw is a call of the platform. */
const pool = /* @__PURE__ */ new Uint32Array(256);
let drawn = pool.length;

/** Returns 128 random bits in four numbers. */
export function randomBits(): number[] {
  if (drawn === pool.length) {
    crypto.getRandomValues(pool);
    drawn = 0;
  }
  const at = drawn;
  drawn += 4;
  return [pool[at], pool[at + 1], pool[at + 2], pool[at + 3]] as number[];
}

/** The hexadecimal digits of each byte: `toString(16)` of larger numbers is slow. */
const digits = /* @__PURE__ */ Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Returns 32 bits as eight digits. */
export const hexOf = (part: number): string =>
  `${digits[part >>> 24]}${digits[(part >>> 16) & 255]}${digits[(part >>> 8) & 255]}${digits[part & 255]}`;

const kinds = { string: "s", number: "n", bigint: "b" } as const;

/** Returns an id as a string: bits, end, the kind of costs, and the key after its type. */
export function idText({ key, bits, end, isByPolicy }: ReservationId): string {
  const hex = bits.map(hexOf).join("");
  return `${hex}.${end.toString(36)}.${isByPolicy ? "p" : "a"}.${kinds[typeof key as keyof typeof kinds]}${key}`;
}

const form = /^([0-9a-f]{32})\.([0-9a-z]{1,11})\.([ap])\.([snb])([\s\S]*)$/;

/** Parses an id; throws `invalid_reservation` if invalid. */
export function parsedId(text: unknown): ReservationId {
  const [, hex = "", end = "", costs, kind, written = ""] =
    (typeof text === "string" && form.exec(text)) || [];
  const key = keyOf(kind, written);
  if (key === undefined) throw invalidField("invalid_reservation", "id", text, reservationText);
  const bits = [0, 8, 16, 24].map((at) => Number.parseInt(hex.slice(at, at + 8), 16));
  return { key, bits, end: Number.parseInt(end, 36), isByPolicy: costs === "p" };
}

function keyOf(kind: string | undefined, written: string): Key | undefined {
  if (kind === "s") return written;
  if (kind === "b") return /^-?\d+$/.test(written) ? BigInt(written) : undefined;
  const number = Number(written);
  return kind === "n" && String(number) === written && Number.isFinite(number) ? number : undefined;
}
