import { counted, telling } from "./counted.js";
import { RateLimiterObject as ByHand } from "./peer.js";
import proxy from "./proxy.js";

export const RateLimiterObject = counted(ByHand);
export default telling(proxy);
