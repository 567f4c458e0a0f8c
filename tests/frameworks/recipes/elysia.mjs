import { Elysia } from "elysia";
import { rateLimit } from "tollgate/fetch";

const policy = { algorithm: "sliding_window", limit: 2, scale: "1m" };
const app = new Elysia().get("/", () => "Hello");

// Bun passes its server as the second argument, which has the client's address.
export default { fetch: rateLimit({ policy }, (request) => app.handle(request)) };
