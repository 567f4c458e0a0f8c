/** wrangler as a quiet local tool: it sends nothing, fetches nothing and asks nothing. */
export const wranglerEnv = {
  ...process.env,
  ...(process.stdout.isTTY ? {} : { NO_COLOR: "1" }),
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_SEND_ERROR_REPORTS: "false",
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_WRITE_LOGS: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
};
