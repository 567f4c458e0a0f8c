/** What a Worker loads only with `watch = true`. It imports no state of the Worker, of which there would be a second one. */
export { Collector } from "./collector.ts";
export { watched, why } from "./endpoint.ts";
export { page } from "./page.ts";
export { paths } from "./paths.ts";
export { WatchObject } from "./watch-object.ts";
