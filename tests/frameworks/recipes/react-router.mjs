import { ipKey } from "tollgate";
import { rateLimit } from "tollgate/fetch";

const policy = { algorithm: "sliding_window", limit: 2, scale: "1m" };
const key = (request) => ipKey(request.headers.get("X-Real-IP") ?? "0.0.0.0");
const limited = rateLimit({ policy, key }, (_request, next) => next());

// Of a route: limits its loaders and actions, and those of the routes inside.
export const middleware = [({ request }, next) => limited(request, next)];
