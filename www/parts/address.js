import { Throttle } from "tollgate";
import { toHash } from "../state.js";

/** Browsers reject an address that changes too often, so its changes are throttled by this package. */
const pace = new Throttle({ algorithm: "token_bucket", capacity: 2, refillRate: 2 });

/** Returns a link to a state. The address itself may be a moment behind. */
export const linkTo = (state) => new URL(toHash(state), location.href).href;

export const keepInAddress = pace.wrap((state) => history.replaceState(null, "", toHash(state)), {
  edge: "trailing",
});
