import { RemoteLimiter } from "tollgate/client";

const { TOLLGATE_URL: url, TOLLGATE_TOKEN: token } = process.env;
const limiter = new RemoteLimiter({ url, token, policy: "mails" });

let allowed = 0;
for (let sent = 0; sent < 30; sent += 1) {
  if ((await limiter.hit("newsletter")).allowed) allowed += 1;
}
process.send(allowed);
process.disconnect();
