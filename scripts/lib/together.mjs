/** Waits for all of several works, then fails if one of them did: none goes on behind the words that say so. */
export async function together(works) {
  const outcomes = await Promise.allSettled(works);
  const failed = outcomes.find(({ status }) => status === "rejected");
  if (failed) throw failed.reason;
}
