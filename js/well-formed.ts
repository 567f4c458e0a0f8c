/** Returns true for a string without lone surrogates, which have no spelling in UTF-8. */
export const isWellFormed = (text: string): boolean => !/\p{Surrogate}/u.test(text);
