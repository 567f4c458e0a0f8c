/** Behind the gateways: answers as soon as it is asked. */
export default { fetch: () => new Response("hello\n") };
