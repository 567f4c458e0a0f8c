import { Throttle } from "tollgate";
import { toHash } from "../state.js";

/** Browsers refuse an address that changes too often: this page is throttled by what it shows. */
const pace = new Throttle({ algorithm: "token_bucket", capacity: 2, refillRate: 2 });

export const keepInAddress = pace.wrap((state) => history.replaceState(null, "", toHash(state)), {
  edge: "trailing",
});
