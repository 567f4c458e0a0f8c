import { PolicyCandidate } from "../../js/access-log/candidate.ts";
import { Replay } from "../../js/access-log/replay.ts";
import { Measure } from "../../js/access-log/suggest.ts";
import { inWords } from "../../js/access-log/words.ts";
import { logOf } from "./source.js";

const summaryOptions = { worst: 10, steps: 120 };
const percent = 99.9;
/** The time between two paints of the page, in milliseconds. */
const paintInterval = 50;

/** Replays files through policies, and returns the summary. `show` is called with the lines read so far. */
export async function replayed(files, { key, policies, signal, show }) {
  const replay = new Replay({ key });
  for (const policy of policies) {
    replay.candidates.push(new PolicyCandidate(inWords(policy), policy, replay.keys));
    replay.measures.push(new Measure(policy));
  }
  let painted = performance.now();
  await replay.read(files.map(logOf), async () => {
    if (performance.now() - painted < paintInterval) return;
    signal.throwIfAborted();
    show(replay.lines);
    await new Promise((resolve) => setTimeout(resolve));
    painted = performance.now();
  });
  signal.throwIfAborted();
  return replay.summary(summaryOptions, percent);
}
