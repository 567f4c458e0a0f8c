/** Numbers the format of keys' values and the semantics of their logs. Under another number keys start unused. */
const format = 4;

/** The prefix of keys in Redis by default. */
export const defaultPrefix = "tollgate:";

/** The name of a limiter that has none: limiters with the same prefix share keys, whatever their policies are. */
export const defaultName = "default";

/** Returns what precedes the names of all limiters with a prefix. */
export const limitersPrefix = (prefix: string): string => `${prefix}${format}:`;

/** Returns what precedes the keys of a limiter. */
export const keysPrefix = (prefix: string, name: string): string => `${limitersPrefix(prefix)}${name}:`;

/** Returns what precedes the lists of the last denials of a limiter's keys. */
export const historyPrefix = (prefix: string, name: string): string => `${prefix}history:${name}:`;
