/** Waits for all promises, and then throws the first error: no work goes on after the error is printed. */
export async function together(works) {
  const outcomes = await Promise.allSettled(works);
  const failed = outcomes.find(({ status }) => status === "rejected");
  if (failed) throw failed.reason;
}
