/** The durations that a slider offers, in milliseconds. */
export const durations = [250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];
