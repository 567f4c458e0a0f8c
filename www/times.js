/** The most hits that fit into an address. */
const mostHits = 2_000;

/** Returns times in ascending order as a short text: the steps between them. */
export function packed(times) {
  let before = 0;
  return times
    .map((time) => {
      const step = time - before;
      before = time;
      return step.toString(36);
    })
    .join(".");
}

/** Parses a text of times; undefined if invalid. */
export function unpacked(text) {
  if (!/^[0-9a-z]+(\.[0-9a-z]+)*$/.test(text)) return undefined;
  let time = 0;
  const times = text.split(".").map((step) => {
    time += Number.parseInt(step, 36);
    return time;
  });
  return times.length <= mostHits && Number.isSafeInteger(time) ? times : undefined;
}

const months = "JanFebMarAprMayJunJulAugSepOctNovDec";

/** Parses the time of a web server's log: `[10/Oct/2026:13:55:36 +0000]`; NaN if there is none. */
function commonLog(line) {
  const match = line.match(/(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}:\d{2}:\d{2}) ([+-]\d{2})(\d{2})/);
  if (!match) return Number.NaN;
  const [, day, month, year, time, hours, minutes] = match;
  const number = String(months.indexOf(month) / 3 + 1).padStart(2, "0");
  return Date.parse(`${year}-${number}-${day}T${time}${hours}:${minutes}`);
}

function isoDate(line) {
  const match = line.match(/\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})?/);
  return match ? Date.parse(match[0].replace(" ", "T") + (match[2] ? "" : "Z")) : Number.NaN;
}

const plainNumber = (line) => (/^\s*\d+(\.\d+)?\b/.test(line) ? Number.parseFloat(line) : Number.NaN);

/** Returns the times of a pasted log in milliseconds since its first, and how many lines had none. */
export function readLog(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  const found = lines.map((line) =>
    [commonLog, isoDate, plainNumber].map((read) => read(line)).find(Number.isFinite),
  );
  const times = found.filter((time) => time !== undefined).sort((one, other) => one - other);
  const kept = times.slice(0, mostHits).map((time) => Math.floor(time - times[0]));
  return { times: kept, unread: lines.length - times.length, left: times.length - kept.length };
}
