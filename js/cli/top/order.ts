import type { KeyRow } from "./snapshot.ts";

/** What keys can be sorted by, with the letter that chooses it. */
export const orders = {
  denied: "d",
  rate: "r",
  used: "u",
  banned: "b",
  held: "h",
  key: "k",
} as const;

export type Order = keyof typeof orders;

/** Returns how much of its limit a key has used; 0 if that is not known. */
export const usedShare = ({ used, limit }: KeyRow): number =>
  used === null || limit === null || limit === 0 ? 0 : used / limit;

const held = ({ reservations, leases }: KeyRow) => (reservations ?? 0) + (leases ?? 0);

/** By each order, a number of which the highest comes first. */
const weights: Readonly<Record<Exclude<Order, "key">, (row: KeyRow) => number>> = {
  denied: ({ denied }) => denied,
  rate: ({ rate }) => rate ?? -1,
  used: usedShare,
  banned: ({ bannedUntil }) => bannedUntil,
  held,
};

/** Returns the rows whose key, limiter or policy has the text, in an order. Rows that are equal in it are in that of use, then of keys. */
export function ordered(rows: readonly KeyRow[], order: Order, filter: string): KeyRow[] {
  const text = filter.toLowerCase();
  const has = ({ key, limiter, policy }: KeyRow) =>
    [key, limiter, policy].some((each) => each.toLowerCase().includes(text));
  const byKey = (one: KeyRow, other: KeyRow) => (one.key < other.key ? -1 : Number(one.key > other.key));
  const weight = order === "key" ? () => 0 : weights[order];
  return rows
    .filter(has)
    .sort(
      (one, other) =>
        weight(other) - weight(one) ||
        (order === "key" ? 0 : usedShare(other) - usedShare(one)) ||
        byKey(one, other),
    );
}
