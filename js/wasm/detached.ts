/** Returns whether a view is of a memory that has grown since: its buffer is detached then, and the view is empty. */
export const isDetached = (view: Int32Array | Float64Array, _memory: WebAssembly.Memory): boolean =>
  view.length === 0;
