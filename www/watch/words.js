const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export const count = (value) => number.format(value);

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
];

/** Returns a duration in its largest unit and the next one. */
export function duration(milliseconds) {
  if (milliseconds < 1_000) return `${Math.ceil(milliseconds)} ms`;
  const at = units.findIndex(([, length]) => milliseconds >= length);
  const [unit, length] = units[at];
  const rest = Math.floor((milliseconds % length) / (units[at + 1]?.[1] ?? 1_000));
  const whole = `${Math.floor(milliseconds / length)} ${unit}`;
  return rest === 0 || at === units.length - 1 ? whole : `${whole} ${rest} ${units[at + 1][0]}`;
}

export const ago = (time, now) => (now - time < 1_000 ? "now" : `${duration(now - time)} ago`);

const clock = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export const timeOf = (time) => clock.format(time);

/** Returns what a source is called. */
export const nameOf = ({ rule, via, policies }) =>
  `${rule || { api: "HTTP API", rpc: "RPC" }[via] || "others"}${policies.length > 0 ? ` · ${policies.join(", ")}` : ""}`;

export const sum = (counts) => counts.reduce((sum, count) => sum + count, 0);
