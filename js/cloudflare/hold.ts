import { isAllowed, type Numbers } from "../numbers.ts";
import { Unsettled } from "../unsettled.ts";
import { ask, Unanswered } from "./ask.ts";
import type { TollgateEnv } from "./env.ts";
import type { Ask, Isolate } from "./isolate.ts";

/** What an object said to a question that is one of several: its decision, and the id of what it holds. */
export interface Held {
  readonly ask: Ask;
  readonly numbers: Numbers;
  readonly id: string;
}

/** Those of all isolates' decisions: their keys have the policies in them. */
const unsettled = new Unsettled();

const keyOf = (isolate: Isolate, { object, set }: Ask) => `${isolate.sets[set]?.[0]} ${object}`;

/**
 * Asks the objects of one decision over several keys, all at once: each sets its cost aside for a moment. What was used
 * before goes along and is settled, so that an allowed request sends one message to each object.
 */
export function holdAll(
  env: TollgateEnv,
  isolate: Isolate,
  asks: readonly Ask[],
): Promise<readonly (Held | Unanswered)[]> {
  return Promise.all(asks.map((ask) => hold(env, isolate, ask)));
}

async function hold(env: TollgateEnv, isolate: Isolate, asked: Ask): Promise<Held | Unanswered> {
  const { object, set, cost } = asked;
  const before = unsettled.take(keyOf(isolate, asked)).join(" ") || undefined;
  try {
    const policies = isolate.sets[set]?.[0] as string;
    const answer = await ask(env, isolate.timeout, object, "hold", policies, cost, before);
    if (typeof answer !== "string") return new Unanswered("failed", answer.message);
    if (!isAllowed(answer)) return { ask: asked, numbers: answer, id: "" };
    const end = answer.lastIndexOf(" ");
    return { ask: asked, numbers: answer.slice(0, end), id: answer.slice(end + 1) };
  } catch (error) {
    if (error instanceof Unanswered) return error;
    throw error;
  }
}

/** All of them allowed it: what they hold is used, which they are told with the next question. */
export function settleLater(isolate: Isolate, all: readonly Held[]): void {
  for (const { ask, id } of all) unsettled.add(keyOf(isolate, ask), id);
}

/** One of them denied it: the others get back what they hold. A message that is lost costs it at its end. */
export async function giveBack(env: TollgateEnv, isolate: Isolate, all: readonly Held[]): Promise<void> {
  const release = ({ ask: { object, set }, id }: Held) =>
    ask(env, isolate.timeout, object, "release", isolate.sets[set]?.[0] as string, 0, id);
  await Promise.allSettled(all.filter(({ id }) => id !== "").map(release));
}
