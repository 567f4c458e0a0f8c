/**
 * The platform's own types, if a project has them: those of browsers, Node and workerd differ.
 */

/** The platform's `fetch`. */
export type Fetch = typeof globalThis extends { fetch: infer Function extends (...args: never[]) => unknown }
  ? Function
  : (input: string, init?: object) => Promise<unknown>;

/** The platform's `AbortSignal`. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer Type } } ? Type : never;

/** The platform's `Request`. */
export type FetchRequest = typeof globalThis extends { Request: { prototype: infer Type } } ? Type : never;

/** The platform's `Response`. */
export type FetchResponse = typeof globalThis extends { Response: { prototype: infer Type } } ? Type : never;
