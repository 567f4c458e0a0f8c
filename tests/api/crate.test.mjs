// The public items of the crate are those that tests/api/crate.txt lists. The suite "rustdoc" runs it.

import assert from "node:assert/strict";
import test from "node:test";
import { crateNames, pinned } from "./names.mjs";

test("the public items of the crate", () => assert.equal(crateNames(), pinned("crate")));
