/** Returns whether a view is of a memory that has grown since. Where the memory is an array, growing copies it. */
export const isDetached = (view: Int32Array | Float64Array, memory: WebAssembly.Memory): boolean =>
  view.buffer !== memory.buffer;
