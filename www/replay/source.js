/** Returns the log in a visitor's file, which is read as a stream and never leaves the page. */
export const logOf = (file) => ({
  name: file.name,
  bytes: () => unpacked(file),
  // Files are read in the order in which they were dropped.
  first: async () => Number.NEGATIVE_INFINITY,
});

async function* unpacked(file) {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const isPacked = first === 0x1f && second === 0x8b;
  const stream = isPacked ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    // Closes the stream if the caller stops half-way.
    reader.cancel().catch(() => {});
  }
}
