const whole = new Intl.NumberFormat("en");

/** Milliseconds for people. */
export function span(milliseconds) {
  if (milliseconds === Number.POSITIVE_INFINITY || milliseconds === null) return "never";
  return milliseconds < 1_000
    ? `${whole.format(milliseconds)} ms`
    : `${(milliseconds / 1_000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`;
}

/** The clock: minutes, seconds, milliseconds. */
export function clockFace(milliseconds) {
  const [minutes, rest] = [Math.floor(milliseconds / 60_000), milliseconds % 60_000];
  return `${String(minutes).padStart(2, "0")}:${(rest / 1_000).toFixed(3).padStart(6, "0")}`;
}

/** A decision in a sentence. */
export function verdict({ allowed, remaining, retryAfter }) {
  if (allowed) return `Allowed, ${whole.format(remaining)} left.`;
  if (retryAfter === Number.POSITIVE_INFINITY || retryAfter === null) return "Denied: it can never pass.";
  return `Denied: it would pass in ${span(retryAfter)}.`;
}
