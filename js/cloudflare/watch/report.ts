import type { Via } from "../log.ts";

/** What decides: a rule of the gateway, or a call of the API or by RPC under these policies. */
export interface Source {
  readonly via: Via | "other";
  /** The methods and the path pattern of a rule; empty for calls. */
  readonly rule: string;
  readonly policies: readonly string[];
  readonly mode: "enforce" | "shadow";
}

/** Decisions by their results. An error is a decision that the object did not make. */
export interface Counts {
  allowed: number;
  denied: number;
  errors: number;
}

export type Result = keyof Counts;

/** The results, in the order in which they are stored. */
export const results: readonly Result[] = ["allowed", "denied", "errors"];

/** The denials of one key by one source, one soon after the other. The numbers are those of the last one. */
export interface Denial extends Omit<Source, "policies"> {
  /** The key as the logs have it. */
  readonly key: string;
  /** The id of the key's object, after `#`. */
  readonly object: string;
  /** When it was denied last, and first. */
  readonly at: number;
  readonly first: number;
  readonly times: number;
  /** The policies that denied it. */
  readonly policies: readonly string[];
  /** The policy that binds most, with its count, its limit and what is left of it. */
  readonly policy: string;
  readonly count: number;
  readonly limit: number;
  readonly remaining: number;
  readonly cost: number;
  /** In milliseconds; `null` for never. */
  readonly retryAfter: number | null;
  readonly banned: boolean;
}

/** A key among those that were denied most: `denied` times at most, and `denied - error` at least. */
export interface TopKey {
  readonly key: string;
  readonly object: string;
  readonly denied: number;
  readonly error: number;
}

/** What an isolate has counted since its last report. */
export interface Report {
  readonly counts: readonly (Source & Counts)[];
  readonly top: readonly TopKey[];
  readonly denials: readonly Denial[];
}

/** Returns what identifies a source. */
export const idOf = ({ via, rule, mode, policies }: Source): string =>
  JSON.stringify([via, mode, rule, policies]);
