import { show } from "../lib/run.mjs";
import { dim, say } from "../lib/say.mjs";

/** Unit tests with hundreds of thousands of keys. They take too long under Miri, which is a thousand times slower. */
const tooLong = [
  "store::index::tests::every_key_is_found_while_the_table_grows",
  "store::slots::sweep::tests::a_million_expired_keys_are_swept_a_few_at_a_time",
  "store::slots::sweep::tests::a_new_key_of_a_full_slab_looks_at_few_slots_too",
];

/** Runs the unit tests of the core and of the npm binding, with its handle table, under Miri. */
export async function underMiri({ miri }) {
  if (miri.why) {
    say(dim(`skipped: ${miri.why}`));
    return;
  }
  const [command, ...args] = miri.cargo;
  const tests = ["test", "-p", "tollgate", "-p", "tollgate-npm", "--lib"];
  const skipped = tooLong.flatMap((name) => ["--skip", name]);
  await show(command, [...args, ...tests, "--", ...skipped], {
    // Tests of the clock read the time of the operating system.
    env: { ...process.env, MIRIFLAGS: "-Zmiri-disable-isolation" },
  });
}
