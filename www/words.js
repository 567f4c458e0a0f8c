const whole = new Intl.NumberFormat("en");

/** Returns milliseconds as a duration: `1.50 s`. */
export function span(milliseconds) {
  if (milliseconds === Number.POSITIVE_INFINITY || milliseconds === null) return "never";
  return milliseconds < 1_000
    ? `${whole.format(milliseconds)} ms`
    : `${(milliseconds / 1_000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`;
}

const periods = { 1000: "a second", 60000: "a minute" };

/** Returns a period in words: `a second`, `5 s`. */
export const period = (milliseconds) =>
  periods[milliseconds] ?? (milliseconds < 1_000 ? span(milliseconds) : `${milliseconds / 1_000} s`);

/** Returns the time of the clock: minutes, seconds, milliseconds. */
export function clockFace(milliseconds) {
  const [minutes, rest] = [Math.floor(milliseconds / 60_000), milliseconds % 60_000];
  return `${String(minutes).padStart(2, "0")}:${(rest / 1_000).toFixed(3).padStart(6, "0")}`;
}

const outcomes = {
  open: () => "open",
  denied: () => "denied",
  settled: ({ charged, back }) =>
    charged > 0 ? `settled: ${charged} charged, ${back} given back` : `settled: ${back} given back`,
  cancelled: ({ back }) => `cancelled: ${back} given back`,
  expired: ({ charged, amount }) =>
    charged > 0 ? `expired: ${charged} charged` : `expired: ${amount} released`,
  extended: ({ ttl }) => `extended: it expires in ${span(ttl)}`,
  refunded: ({ back }) => `${back} given back`,
};

/** Returns the outcome of a change in a few words. */
export const outcome = (change) => outcomes[change.what](change);

/** Returns a change of the level as a sentence. */
export const changeInWords = (change) =>
  change.number === undefined
    ? `Refund: ${outcome(change)}.`
    : `Reservation ${change.number + 1} ${outcome(change)}.`;

/** Returns a decision as a sentence. */
export function verdict({ allowed, remaining, retryAfter, isBanned }) {
  if (isBanned) return `Banned: it would pass in ${span(retryAfter)}.`;
  if (allowed) return `Allowed, ${whole.format(remaining)} left.`;
  if (retryAfter === Number.POSITIVE_INFINITY || retryAfter === null) return "Denied: it can never pass.";
  return `Denied: it would pass in ${span(retryAfter)}.`;
}
