/** Options of other rate limiters, each line with the option to use instead. */
const familiarNames = `windowMs timeWindow duration max limit points: policy: { algorithm: "fix_window_per_key", limit: 100, scale: "1m" }
keyGenerator id: key
identifier: policy: { name: "…", … }
handler message statusCode errorMessage errorResponseBuilder onExceeded onLimitReached: onDenied: a function that sends the response
onExceeding requestPropertyName: onDecision
standardHeaders legacyHeaders disableHeader addHeaders addHeadersOnExceeding enableDraftSpec: headers: "standard", "legacy" or "none"
skipSuccessfulRequests: charge: "failures"
skipFailedRequests: charge: "successes"
requestWasSuccessful: charge: a function of the response that returns the cost
store redis client db: limiter
binding: limiter: (c) => c.env.RATE_LIMIT, with a policy that has its numbers
allowList whitelist: skip: inRanges(["192.0.2.0/24"]), or a function
passOnStoreError skipOnError: onError: "allow"
blockDuration inMemoryBlockDuration inmemoryBlockDuration: ban: { after: 1, scale: "1m", for: "15m" }
onBanReach: onDecision: a function that checks decision.reason === "banned"
ipv6Subnet: key: (request) => ipKey(address, { ipv6Prefix: 56 })
prefix nameSpace groupId: key
hook: the hook to which you add it, or app.register in Fastify
algorithm policies: policy: { algorithm: "…", … }
validate: nothing, since options are always checked`;

/** Returns what to use instead of an option of another rate limiter; undefined if the option is unknown. */
export function insteadOf(name: string): string | undefined {
  for (const line of familiarNames.split("\n")) {
    const colon = line.indexOf(": ");
    if (line.slice(0, colon).split(" ").includes(name)) return line.slice(colon + 2);
  }
  return undefined;
}
