import { warnOnce } from "./warnings.ts";

/** An app of Express. */
interface ExpressApp {
  get(setting: string): unknown;
}

/** Warns once if an app of Express takes the address that a client names. */
export function warnOfExpressTrust(app: ExpressApp): void {
  if (app.get("trust proxy") === true)
    warnOnce(
      "express",
      '"trust proxy": true takes the address that a client names; set how many proxies, such as 1',
    );
}

/** Requests of Fastify have the getter of their app's setting in their prototype. */
const checked = new WeakSet<object>();

/** More hops than any setting counts, of which only one that trusts all takes the first. */
const invented = Array.from({ length: 99 }, (_, hop) => `198.51.100.${hop + 1}`);

/** Warns once if an app of Fastify takes the address that a client names. The app does not show its setting. */
export function warnOfFastifyTrust(request: object): void {
  const prototype: object = Object.getPrototypeOf(request);
  if (checked.has(prototype)) return;
  checked.add(prototype);
  if (addressOfInvented(prototype) === invented[0])
    warnOnce(
      "fastify",
      'trustProxy: true takes the address that a client names; set the address of your proxy, such as "10.0.0.1"',
    );
}

/** Returns the address that an app takes from hops that do not exist. */
function addressOfInvented(prototype: object): unknown {
  const headers = { "x-forwarded-for": invented.join(", ") };
  const raw = { headers, socket: { remoteAddress: "198.51.100.200" }, connection: {} };
  try {
    return Object.assign(Object.create(prototype), { raw }).ip;
  } catch {
    // A function of the app's own that takes only what it knows.
    return undefined;
  }
}
