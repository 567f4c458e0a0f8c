import { summaryHtml } from "../access-log/html.ts";
import type { ReplaySummary } from "../access-log/replay.ts";
import summaryStyle from "../access-log/summary.css";
import style from "./report.css";

/** Returns a summary as a page without scripts and requests. */
export const htmlReport = (summary: ReplaySummary): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>What a rate limit would have denied</title>
<style>
${style}${summaryStyle}</style>
</head>
<body>
<main>
<h1>What a rate limit would have denied</h1>
${summaryHtml(summary, 2)}
</main>
<footer><p>Written by <code>tollgate replay</code>. The core made every decision, at the times in the log.</p></footer>
</body>
</html>
`;
