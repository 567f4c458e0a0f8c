/** The environment of wrangler as a local tool, without metrics, reports, downloads and prompts. */
export const wranglerEnv = {
  ...process.env,
  ...(process.stdout.isTTY ? {} : { NO_COLOR: "1" }),
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_SEND_ERROR_REPORTS: "false",
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_WRITE_LOGS: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
};
