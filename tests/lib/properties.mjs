import fc from "fast-check";

/** The seed of all properties, so that a failure can be repeated: `FAST_CHECK_SEED=7` tries others. */
if (process.env.FAST_CHECK_SEED) fc.configureGlobal({ seed: Number(process.env.FAST_CHECK_SEED) });

export default fc;
