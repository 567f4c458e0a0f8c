import type { Costs, Exception, ExceptionEnd, Policies } from "../types.ts";

/** The policy that an operation is on; it must be named if there are several. */
interface OnPolicy {
  readonly of: string | undefined;
}

/** An exception to set, or null to lift the one that there is. */
export interface Excepting {
  readonly name: "except";
  readonly exception: Exception | null;
  readonly end: ExceptionEnd | undefined;
}

/** An operation on a key, under its name in the table of operations, with its arguments. A hit here can be undone. */
export type KeyOperation =
  | { readonly name: "hit"; readonly cost: Costs; readonly policies: Policies | undefined }
  | {
      readonly name: "reserve";
      readonly cost: Costs;
      readonly ttl: number | undefined;
      readonly policies: Policies | undefined;
    }
  | ({ readonly name: "inc"; readonly cost: number } & OnPolicy)
  | ({ readonly name: "set"; readonly count: number } & OnPolicy)
  | ({ readonly name: "ban"; readonly for: number } & OnPolicy)
  | ({ readonly name: "get" | "expires_at" | "unban" } & OnPolicy)
  | { readonly name: "exceptions" }
  | { readonly name: "reset"; readonly reservations: boolean };

/** An operation on a reservation. */
export type ReservationOperation =
  | { readonly name: "settle"; readonly used: Costs | undefined }
  | { readonly name: "extend"; readonly ttl: number };
