import { once } from "node:events";
import { createServer } from "node:net";
import { build } from "./build.mjs";
import { bin } from "./lib/paths.mjs";
import { serve } from "./lib/run.mjs";
import { bold, Failure, say, seconds } from "./lib/say.mjs";
import { wranglerEnv } from "./lib/wrangler.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

const port = process.env.PORT || "8787";

/** Checked first, since the other steps may take minutes. */
const freePort = { id: "port", name: `port ${port}`, check: checkPort };

await afterSetUp([freePort, ...toBuild], async (found) => {
  await build(found);
  const started = performance.now();
  const args = ["dev", "--port", port, "--ip", "localhost", "--show-interactive-dev-session=false"];
  const { child, ended } = serve(bin("wrangler"), args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: wranglerEnv,
  });
  onOutput(child.stdout, /Ready on/, () => {
    const took = seconds(performance.now() - started);
    say(`\n${bold(`Tollgate is at http://localhost:${port}`)} (ready in ${took}, Ctrl-C stops it)\n`);
  });
  const { code } = await ended;
  if (code !== 0 && !process.exitCode) throw new Failure(`wrangler dev ended with exit code ${code}`);
});

/** Checks that the port is free. wrangler does so too, but later and with a long message. */
async function checkPort() {
  const probe = createServer();
  try {
    await once(probe.listen(Number(port), "localhost"), "listening");
  } catch (error) {
    const why = error.code === "EADDRINUSE" ? "something else listens on it" : error.message;
    throw new Failure(`port ${port} cannot be used: ${why}`, {
      remedy: "stop what uses it, or choose another: PORT=8788 npm start",
    });
  }
  await once(probe.close(), "close");
  return port;
}

/** Forwards a child's output, and calls `act` at the first match. */
function onOutput(stream, pattern, act) {
  let seen = "";
  stream.on("data", (chunk) => {
    process.stdout.write(chunk);
    if (seen === null) return;
    seen = (seen + chunk).slice(-1_000);
    if (pattern.test(seen)) {
      seen = null;
      act();
    }
  });
}
