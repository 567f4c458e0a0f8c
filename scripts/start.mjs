import { build } from "./build.mjs";
import { bin } from "./lib/paths.mjs";
import { serve } from "./lib/run.mjs";
import { bold, Failure, say, seconds } from "./lib/say.mjs";
import { wranglerEnv } from "./lib/wrangler.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

const port = process.env.PORT || "8787";
const address = `http://localhost:${port}`;

await afterSetUp(toBuild, async (found) => {
  await build(found);
  const started = performance.now();
  const args = ["dev", "--port", port, "--ip", "localhost", "--show-interactive-dev-session=false"];
  const { ended } = serve(bin("wrangler"), args, {
    stdio: ["ignore", "inherit", "inherit"],
    env: wranglerEnv,
  });
  const stopped = ended.then(({ code }) => code);
  const outcome = await Promise.race([answers(address), stopped]);
  if (outcome === true) {
    say(
      `\n${bold(`Tollgate is at ${address}`)} (ready in ${seconds(performance.now() - started)}, Ctrl-C stops it)\n`,
    );
  }
  const code = await stopped;
  if (code !== 0 && !process.exitCode) {
    throw new Failure(`wrangler dev ended with exit code ${code}`, {
      remedy: `if port ${port} is taken, choose another: PORT=8788 npm start`,
    });
  }
});

/** True as soon as the page is served. */
async function answers(url) {
  for (;;) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
      if (response.ok) return true;
    } catch {
      // Not listening yet.
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
