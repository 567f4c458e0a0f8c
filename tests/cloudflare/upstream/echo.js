/** A bound Worker that says what reached it. */
export default {
  fetch: (request) => new Response(`${request.method} ${request.url}`),
};
