/** Browsers have no channels. */
export const decisions = undefined;

/** Browsers have no channels. */
export const errors = undefined;
