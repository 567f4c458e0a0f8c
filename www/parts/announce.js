import { Throttle } from "tollgate";
import { element, say } from "../dom.js";

/** A reader is told the last of many answers, not each of them. */
const calm = new Throttle({ algorithm: "token_bucket", capacity: 1, refillRate: 2 });

export const announce = calm.wrap(
  (text) => {
    const region = element("announcer");
    // The same words twice are said twice.
    if (region.textContent === text) region.textContent = "";
    say(region, text);
  },
  { edge: "trailing" },
);
