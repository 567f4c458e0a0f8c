import { copiedOptions } from "../checks.ts";
import { invalidField } from "../errors/error.ts";

/** Reads the option of `reset`: whether it drops open reservations, too. */
export function readReservations(options: { readonly reservations?: boolean | undefined }): boolean {
  const { reservations = false } = copiedOptions(options, ["reservations"]);
  if (typeof reservations === "boolean") return reservations;
  throw invalidField("invalid_option", "reservations", reservations, "a boolean");
}
