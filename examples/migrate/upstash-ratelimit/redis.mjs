const counts = new Map();

/** A stand-in for Redis with what the script for fixed windows needs: it adds, and returns the sum and the limit. */
export const redis = {
  async evalsha(_hash, [key], [limit, _window, cost]) {
    counts.set(key, (counts.get(key) ?? 0) + cost);
    return [counts.get(key), limit];
  },
};
