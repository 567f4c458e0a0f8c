/** The time at which the programs begin. */
export const now = 1_767_227_321_853;
