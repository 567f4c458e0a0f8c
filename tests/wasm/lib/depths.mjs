/** Calls `work` with less and less of the stack left, to the very end of it. Returns how often it threw. */
export function atEveryDepth(work) {
  let thrown = 0;
  const dive = () => {
    try {
      work();
    } catch {
      thrown += 1;
    }
    dive();
  };
  try {
    dive();
  } catch {
    // The stack is full.
  }
  return thrown;
}
