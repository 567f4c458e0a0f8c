import { invalidField, wrongAmount } from "../errors/error.ts";
import { asReserved, costsByPosition, usedByPosition } from "../policy/costs.ts";
import { isInteger } from "../policy/durations.ts";
import { exceptionOf, ofNoPolicy, readException } from "../policy/exceptions.ts";
import { KnownPolicies } from "../policy/known-policies.ts";
import { mismatch, ReadPolicies } from "../policy/policies.ts";
import { parsedId } from "../reservation/reservation-id.ts";
import type { Costs, Exception, KeyException, Policies } from "../types.ts";
import { reservationText } from "../wasm/generated.ts";
import type { Replicas } from "./replicas.ts";

/** Writes operations as entries have them, after checking their arguments. */
export class OperationTexts {
  readonly #read: ReadPolicies;
  readonly #replicas: Replicas;
  /** The policies of calls, each read once, and their texts. */
  readonly #calls = new KnownPolicies((policies) => {
    const read = ReadPolicies.of(policies);
    const text = this.#replicas.callText(read.policies);
    if (text === "") throw mismatch(this.#read, read);
    return { policies: read.policies, text };
  });

  constructor(read: ReadPolicies, replicas: Replicas) {
    this.#read = read;
    this.#replicas = replicas;
  }

  /** Returns costs: one number, or one for each policy. */
  costs(costs: Costs): string {
    if (typeof costs !== "number") return costsByPosition(costs, this.#read).join(",");
    if (!isInteger(costs)) throw wrongAmount("cost", costs);
    return `${costs}`;
  }

  /** Returns the policies of a call; empty if it has none. Throws if they do not fit those of the limiter. */
  call(policies: Policies | undefined): string {
    if (policies === undefined) return "";
    return this.#calls.of(policies).text;
  }

  /** Returns the fields of an exception. Throws if a policy cannot take them. */
  exception(exception: Exception): string {
    const parts = readException(exception, this.#read);
    const [position = ofNoPolicy, field] = parts[0] ?? [];
    if (position === ofNoPolicy) return field === allowField ? "+" : "-";
    const text = parts.map((part) => part.join(".")).join(",");
    this.#replicas.checkException(text);
    return text;
  }

  /** Returns the key of a reservation, and the operation that settles it. */
  settlement(id: string, used: Costs | undefined): { key: string; text: string } {
    const { key, start, isByPolicy } = parsedStart(id);
    const amounts = usedByPosition(used, this.#read, isByPolicy);
    return { key, text: `t${start}:${amounts.map((one) => (one === asReserved ? "_" : one)).join(",")}` };
  }

  /** Returns the key of a reservation, and the operation that moves its end to `ttl` milliseconds from now. */
  extension(id: string, ttl: number): { key: string; text: string } {
    const { key, start } = parsedStart(id);
    return { key, text: `x${start}:${ttl}` };
  }
}

/** The position of `allow` among the fields of an exception. */
const allowField = 0;

/** Parses an exception as a replica writes it: its end, and its fields as entries have them; `null` if there is none. */
export function exceptionIn(text: string, names: readonly string[]): KeyException | null {
  if (text === "") return null;
  const [until = "", fields = ""] = text.split(":");
  if (fields === "+" || fields === "-")
    return exceptionOf(Number(until), [["", [fields === "+" ? 0 : 1, 1]]]);
  const parts = fields === "" ? [] : fields.split(",").map((part) => part.split(".").map(Number));
  return exceptionOf(
    Number(until),
    parts.map(([position = 0, ...numbers]) => [names[position] as string, numbers] as const),
  );
}

/** Parses the id of a reservation. `start` is the id without its key, as entries have it. */
function parsedStart(id: string): { key: string; start: string; isByPolicy: boolean } {
  const { key, isByPolicy } = parsedId(id);
  if (typeof key !== "string") throw invalidField("invalid_reservation", "id", id, reservationText);
  return { key, start: id.slice(0, id.length - key.length - 2), isByPolicy };
}
