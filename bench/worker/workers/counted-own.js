import worker, { RateLimiterObject as Own } from "../../../js/cloudflare/worker.ts";
import { counted, telling } from "./counted.js";

export const RateLimiterObject = counted(Own);
export default telling(worker);
