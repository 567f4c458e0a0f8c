import { show } from "../lib/run.mjs";
import { dim, say } from "../lib/say.mjs";

/** Runs the unit tests of the core, and of the bindings with unsafe code, under Miri. */
export async function underMiri({ miri }) {
  if (miri.why) {
    say(dim(`skipped: ${miri.why}`));
    return;
  }
  const [command, ...args] = miri.cargo;
  const tests = ["test", "-p", "tollgate", "-p", "tollgate-npm", "-p", "tollgate-throttle", "--lib"];
  await show(command, [...args, ...tests], {
    // Tests of the clock read the time of the operating system.
    env: { ...process.env, MIRIFLAGS: "-Zmiri-disable-isolation" },
  });
}
