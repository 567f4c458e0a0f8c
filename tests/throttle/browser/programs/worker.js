import { take } from "./take.js";

postMessage(await take());
