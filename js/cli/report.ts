import type { ReplaySummary } from "../replay/replay.ts";
export const htmlReport = (summary: ReplaySummary): string => JSON.stringify(summary);
