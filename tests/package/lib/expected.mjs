/** What every fixture reports: two hits fit, the third does not, 30 seconds before the window ends. */
export const expected = {
  decisions: [
    decision({ allowed: true, count: 1, remaining: 1 }),
    decision({ allowed: true, count: 2, remaining: 0 }),
    decision({ allowed: false, count: 2, remaining: 0, retryAfter: 30_000, violated: ["burst"] }),
  ],
  headers: {
    "RateLimit-Policy": '"burst";q=2;w=60',
    RateLimit: '"burst";r=0;t=30',
    "Retry-After": "30",
  },
  problem: {
    type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    title: "Request cannot be satisfied as assigned quota has been exceeded",
    status: 429,
    "violated-policies": ["burst"],
  },
};

function decision(own) {
  return {
    limit: 2,
    retryAfter: 0,
    resetAfter: 30_000,
    moreAfter: 30_000,
    policy: "burst",
    violated: [],
    ...own,
  };
}
