/** The flags of Node's test runner. A test that waits for ever fails by name, before the whole run is cut off. */
export const nodeTestFlags = ["--test", "--test-timeout=600000"];
