import type { FetchResponse } from "../throttle/platform.ts";
import { contentType } from "./exposition.ts";

/** The part of Node's response that is needed, which Express extends. */
export interface NodeResponse {
  /** Sets a header. */
  setHeader(name: string, value: string): unknown;
  /** Ends the response. */
  end(body: string): unknown;
}

/** The part of Fastify's reply that is needed. */
export interface Reply {
  /** Sets a header. */
  header(name: string, value: string): this;
  /** Ends the response. */
  send(body: string): unknown;
}

/** Responds with a text, in each framework. */
export const respond = {
  fetch: (text: string): FetchResponse => new Response(text, { headers: { "Content-Type": contentType } }),
  node(text: string, response: NodeResponse): void {
    response.setHeader("Content-Type", contentType);
    response.end(text);
  },
  fastify: (text: string, reply: Reply): unknown => reply.header("Content-Type", contentType).send(text),
};
