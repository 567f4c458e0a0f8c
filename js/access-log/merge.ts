import type { Entries } from "./entries.ts";

/** A log that is read as needed, in order of time. */
export interface EntryStream {
  /** The approximate time of its first entry; `-Infinity` if that is not known. */
  readonly first: number;
  entries(): AsyncIterator<Entries>;
}

/** An open stream and the position of its next entry. */
interface Head {
  readonly stream: AsyncIterator<Entries>;
  entries: Entries;
  at: number;
}

const timeOf = ({ entries, at }: Head) => entries.times[at] as number;

/**
 * Reads several logs as one, in order of time: those of several servers, or one that was rotated. A log is opened when
 * the time of its first entry is reached. Returns how many entries were late; they count at the time of the one before.
 */
export async function merge(
  streams: readonly EntryStream[],
  each: (entries: Entries, from: number, to: number) => void,
): Promise<number> {
  const waiting = streams.toSorted((one, other) => one.first - other.first);
  const heads: Head[] = [];
  let latest = Number.NEGATIVE_INFINITY;
  let late = 0;
  while (heads.length > 0 || waiting.length > 0) {
    let low = lowest(heads);
    const [next] = waiting;
    if (next !== undefined && (low === undefined || next.first <= timeOf(low))) {
      waiting.shift();
      const head = await opened(next);
      if (head !== undefined) heads.push(head);
      continue;
    }
    low = low as Head;
    const { entries, at } = low;
    const until = Math.min(next?.first ?? Number.POSITIVE_INFINITY, lowestOther(heads, low));
    const end = endOfRun(entries, at, until);
    for (let early = at; early < end && (entries.times[early] as number) < latest; early += 1) {
      entries.times[early] = latest;
      late += 1;
    }
    latest = entries.times[end - 1] as number;
    each(entries, at, end);
    low.at = end;
    if (end === entries.length && !(await advanced(low))) heads.splice(heads.indexOf(low), 1);
  }
  return late;
}

async function opened(stream: EntryStream): Promise<Head | undefined> {
  const head = { stream: stream.entries(), entries: undefined as unknown as Entries, at: 0 };
  return (await advanced(head)) ? head : undefined;
}

/** Reads the next entries of a stream; returns false if there are none. */
async function advanced(head: Head): Promise<boolean> {
  for (;;) {
    const { done, value } = await head.stream.next();
    if (done === true) return false;
    if (value.length === 0) continue;
    head.entries = value;
    head.at = 0;
    return true;
  }
}

const lowest = (heads: readonly Head[]): Head | undefined => {
  let low = heads[0];
  for (const head of heads) if (low === undefined || timeOf(head) < timeOf(low)) low = head;
  return low;
};

const lowestOther = (heads: readonly Head[], low: Head): number => {
  let least = Number.POSITIVE_INFINITY;
  for (const head of heads) if (head !== low) least = Math.min(least, timeOf(head));
  return least;
};

/** Returns the end of the entries that are no later than a time; at least one is included. */
function endOfRun({ times, length }: Entries, from: number, until: number): number {
  let end = from + 1;
  if ((times[length - 1] as number) <= until) return length;
  while (end < length && (times[end] as number) <= until) end += 1;
  return end;
}
