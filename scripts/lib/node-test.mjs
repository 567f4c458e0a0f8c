/** The flags of Node's test runner. A test that waits for ever fails by name, before the whole run is cut off. */
export const nodeTestFlags = ["--test", "--test-timeout=600000"];

/** Returns the patterns of the files that Node's test runner runs in folders of `tests`. */
export const testFilesIn = (folders) => folders.map((folder) => `tests/${folder}/*.test.mjs`);
