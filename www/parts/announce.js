import { Throttle } from "tollgate";
import { element, say } from "../dom.js";

/** A screen reader reads the last of many texts, not each of them. */
const calm = new Throttle({ algorithm: "token_bucket", capacity: 1, refillRate: 2 });

export const announce = calm.wrap(
  (text) => {
    const region = element("announcer");
    // Cleared first, so that the same text is read again.
    if (region.textContent === text) region.textContent = "";
    say(region, text);
  },
  { edge: "trailing" },
);
